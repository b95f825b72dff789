"""Score-function gradients compared with enumerated and closed-form gradients by z-tests of means
over 10⁵ draws."""

import itertools

import pytest
import torch
from support.runs.configured import F64, component
from support.small.line_model import line_gaussian, line_gradient, line_rows
from support.small.small_bernoulli import estimates_z
from support.small.unlabelled_problems import exact_elbo as exact_elbo_of_ppca
from support.small.unlabelled_problems import ppca, real_rows
from support.targets.bernoulli_by_hand import SmallBernoulli, exact_gradient, flat, log_ratio, rows
from torch.autograd import grad
from torch.testing import assert_close

from components.registry import get
from runner.execution.rng import Streams

# 10⁵ draws: every row occurs many times in a batch
ESTIMATES = 250
COPIES = 400
GRADIENTS = {
    "reinforce": {},
    "vargrad": {},
    "running": {"name": "reinforce_cv"},
    "sampled": {"name": "reinforce_cv", "coefficient": "sampled"},
    "oracle": {"name": "reinforce_cv", "coefficient": "oracle", "extra_samples": 3},
    "nvil": {"normalise": False, "lr": 0.05},
}


def gradient(key, **changes):
    keys = {"n_samples": 3} | GRADIENTS[key] | changes
    return component("gradient", str(keys.pop("name", key)), **keys)


def largest_z(estimator, module, batch, exact, estimates=ESTIMATES):
    """Largest |mean − exact| in standard errors over all parameters; the estimator learns during
    the draws."""
    z = estimates_z(estimator, module, [batch] * estimates, Streams(0), exact)
    return float(z.abs().max())


@pytest.mark.parametrize("key", GRADIENTS)
def test_score_gradients_are_unbiased_on_bernoulli_model(key):
    module = SmallBernoulli()
    batch = rows(copies=COPIES, scale=0.005)
    # of 57 parameters
    assert largest_z(gradient(key), module, batch, exact_gradient(module, batch)) < 4.2


@pytest.mark.parametrize("name", ["reinforce", "vargrad"])
def test_batch_sum_is_unbiased_with_more_variance(name):
    """Scores of other rows have mean 0; their products with a row's f are noise."""
    module = SmallBernoulli()
    batch = rows(n=8, copies=1, scale=0.5)
    exact = exact_gradient(module, batch)
    assert (
        largest_z(
            component("gradient", name, n_samples=40, product="batch_sum"),
            module,
            batch,
            exact,
            1500,
        )
        < 4.2
    )
    spread = []
    for product in ("per_row", "batch_sum"):
        estimator = component("gradient", name, n_samples=4, product=product)
        rng = Streams(1)
        estimates = torch.stack(
            [flat(estimator.estimate(module, batch, rng, None)[0]) for _ in range(150)]
        )
        spread.append(float(estimates.var(0).sum()))
    assert spread[1] > 3 * spread[0]


def test_single_draw_gradients_are_unbiased():
    module = SmallBernoulli()
    batch = rows(copies=COPIES, scale=0.005)
    for key in ("reinforce", "running", "oracle", "nvil"):
        estimator = gradient(key, n_samples=1)
        assert largest_z(estimator, module, batch, exact_gradient(module, batch), 120) < 4.2


@pytest.mark.parametrize("key", GRADIENTS)
def test_score_gradients_are_unbiased_on_gaussian_model(key):
    problem = real_rows(n=8)
    module = ppca(problem, exact_guide=False)
    module.generative.log_noise = torch.nn.Parameter(module.generative.log_noise)
    exact = flat(grad(exact_elbo_of_ppca(module, problem.train.x), list(module.parameters())))
    estimator = gradient(key, **({"lr": 0.01} if key == "nvil" else {}))
    assert largest_z(estimator, module, problem.train, exact, 400) < 4.2  # of 27 parameters


@pytest.mark.parametrize("key", [key for key in GRADIENTS if key != "nvil"])
def test_score_gradients_are_unbiased_on_shared_gaussian(key):
    module = line_gaussian(full=False, noise="shared")
    batch = line_rows(scale=2.0)
    # of 4 parameters
    assert largest_z(gradient(key), module, batch, line_gradient(module, batch), 800) < 4.0


def test_estimators_declare_bias_and_bound():
    assert all(
        get("gradient", name).unbiased for name in ("reinforce", "vargrad", "reinforce_cv", "vimco")
    )
    assert not get("gradient", "nvil").unbiased  # by default it rescales the signal
    assert not get("gradient", "vargrad_reference").unbiased
    assert {get("gradient", name).bound for name in ("reinforce", "vargrad", "nvil")} == {"elbo"}
    assert get("gradient", "vimco").bound == "multi_sample_bound"


def test_vimco_is_unbiased_only_for_multi_sample_bound():
    """E[L²] enumerated: a sum over all 64² pairs of states."""
    module = SmallBernoulli()
    batch = rows(copies=COPIES, scale=0.005)
    estimator = component("gradient", "vimco", n_samples=2)
    batch_of_rows = rows()
    log_q, f = log_ratio(module, batch_of_rows)
    pairs = torch.logaddexp(-f, -f.T) - torch.tensor(2.0).log()  # [64, 64] of one row
    bound = batch.scale * COPIES * ((log_q + log_q.T).exp() * pairs).sum()
    exact = flat(grad(bound, list(module.parameters())))
    assert largest_z(estimator, module, batch, exact) < 4.2
    assert largest_z(estimator, module, batch, exact_gradient(module, batch), 120) > 8
    rng = Streams(1)
    terms = [estimator.estimate(module, batch, rng, None)[1] for _ in range(200)]
    values = torch.stack([t["multi_sample_bound"] for t in terms]).detach()
    assert float((values.mean() - bound.detach()).abs() / (values.std() / 200**0.5)) < 4
    assert torch.stack([t["elbo"] for t in terms]).mean() < float(bound) - 0.1


def test_vimco_uses_geometric_mean_of_other_draws():
    from components.gradients.score.vimco import leave_one_out_log_mean

    log_w = torch.randn(4, 3, dtype=F64)
    for s, b in itertools.product(range(4), range(3)):
        others = torch.cat([log_w[:s, b], log_w[s + 1 :, b]]).exp()
        literal = ((others.sum() + others.prod() ** (1 / 3)) / 4).log()
        assert_close(leave_one_out_log_mean(log_w)[s, b], literal, rtol=1e-12, atol=1e-12)


def test_terms_contain_the_bound():
    module = SmallBernoulli()
    batch = rows(n=3, copies=COPIES, scale=2.0)
    _, terms, _ = gradient("reinforce", n_samples=200).estimate(module, batch, Streams(0), None)
    log_q, f = log_ratio(module, batch)
    assert float(terms["elbo"]) == pytest.approx(float(-2.0 * (log_q.exp() * f).sum()), rel=0.01)
