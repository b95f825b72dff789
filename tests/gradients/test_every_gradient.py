"""Every registered gradient that is marked unbiased, compared with exact gradients of three models
in one family of tests.

The list comes from the registry, so that new estimators are tested automatically. Estimators with
requirements that a model does not meet are skipped for it.
"""

import pytest
import torch
from scipy.stats import t
from support.runs.configured import component, defaults
from support.small.line_model import line_gaussian, line_gradient, line_rows
from support.small.small_bernoulli import (
    binary_rows,
    enumerated_gradient,
    enumerated_multi_sample,
    estimates_z,
    flat,
    small_dvae,
    z_scores,
)
from torch.autograd import grad

from components import registry
from components.contracts.capabilities import FactoredGuide
from components.contracts.problems import Rows
from components.inference.variational.global_gaussian import GAUSSIAN_CAPABILITIES
from components.models.latent.dvae import DVAE
from runner.execution.rng import Streams

SAMPLES = 3  # S of the Bernoulli model: the multi-sample bound is a sum over all 64³ triples
ALL = list(registry.names("gradient"))
OFFERED = DVAE.offers | GAUSSIAN_CAPABILITIES
UNBIASED = [name for name in ALL if registry.get("gradient", name).unbiased]


def estimator_of(name, n_samples):
    """The gradient with the defaults of its YAML; members, if any, use the same number of draws."""
    changes = {"n_samples": n_samples}
    if members := defaults("gradient", name).get("members"):
        changes["members"] = [component("gradient", m, n_samples=n_samples) for m in members]
    return component("gradient", name, **changes)


def bernoulli_z(name, draws, groups):
    """z-scores [P]; rows are repeated, so that the estimate of a group is a mean over many rows."""
    estimator = estimator_of(name, SAMPLES)
    x = binary_rows(n=2).train.x
    module = small_dvae(binary_rows(n=2))
    batch = Rows(x, 3.0)
    if estimator.bound == "elbo":
        exact = enumerated_gradient(module, batch)
    else:
        assert estimator.bound == "multi_sample_bound"
        exact = flat(
            grad(enumerated_multi_sample(module, batch, SAMPLES), list(module.parameters()))
        )
    return z_scores(estimator, module, batch, draws, groups, exact)


def gaussian_z(name, full, draws, groups, noise="rows"):
    """z-scores [P] of q(θ) = N(m, L Lᵀ), every estimate of a minibatch and of draws/groups draws
    for each row."""
    estimator = estimator_of(name, draws // groups)
    module = line_gaussian(full, noise)
    data = line_rows()
    rng = Streams(7)
    batches = (data.part(torch.randperm(6, generator=rng.batches)[:3], 2.0) for _ in range(groups))
    return estimates_z(estimator, module, batches, rng, line_gradient(module, data))


def sweep_gradients(names, draws, groups, steps):
    """z-scores of each gradient on each compatible model, by groups and by steps."""
    for name in names:
        needs = registry.get("gradient", name).requires.capabilities
        if needs <= DVAE.offers:
            yield f"{name} of the Bernoulli model", bernoulli_z(name, draws, groups)
        if FactoredGuide in needs:
            yield f"{name} of a factored q", gaussian_z(name, False, draws, steps, "shared")
        elif needs <= GAUSSIAN_CAPABILITIES:
            for full in (False, True):
                yield f"{name} of q with full={full}", gaussian_z(name, full, draws, steps)


def reject_by_holm(names, draws, groups, steps):
    """Rejections of Holm's procedure at level 0.001 among t-tests of all parameters, models and
    gradients, with the degrees of freedom of the smaller number of groups or steps."""
    tests = [
        (
            2 * float(t.sf(abs(float(z)), min(groups, steps) - 1)),
            f"{label}, parameter {i}: z = {float(z):.1f}",
        )
        for label, scores in sweep_gradients(names, draws, groups, steps)
        for i, z in enumerate(scores)
    ]
    rejected = []
    for rank, (p, label) in enumerate(sorted(tests)):
        if p * (len(tests) - rank) > 0.001:
            break
        rejected.append(label)
    return rejected


def test_tested_gradients_cover_the_registry():
    assert {
        "reinforce",
        "vargrad",
        "vimco",
        "disarm",
        "arms",
        "rebar",
        "relax",
        "double_cv",
        "rodeo",
    } <= set(UNBIASED)
    assert {"reparam", "sticking_the_landing", "amortised_cv", "context_free_cv"} <= set(UNBIASED)
    assert {"taylor_cv", "quadratic_cv", "joint_cv"} <= set(UNBIASED)
    assert "gumbel_softmax" not in UNBIASED
    covered = [
        name for name in UNBIASED if registry.get("gradient", name).requires.capabilities <= OFFERED
    ]
    assert covered == UNBIASED  # every gradient has a compatible model


def test_unbiased_gradients_pass_with_few_draws():
    assert reject_by_holm(UNBIASED, draws=1200, groups=30, steps=40) == []


def test_biased_gradient_fails():
    assert reject_by_holm(["gumbel_softmax"], draws=20_000, groups=30, steps=40)


@pytest.mark.slow
def test_unbiased_gradients_pass_with_100000_draws():
    assert reject_by_holm(UNBIASED, draws=100_000, groups=100, steps=1000) == []
