"""Variational inference of a model with its guide: it reaches a known maximum, and its gradient
estimator is a nested component."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import pytest
import torch
from support.runs.checked_pairs import check_pairs
from support.runs.configured import component, compose_component
from support.small.small_problems import train
from support.small.unlabelled_problems import log_evidence, real_rows

from components.contracts.capabilities import LogRatio, Pathwise
from components.contracts.problems import Kind, Values
from components.contracts.requirements import Requirements
from components.contracts.roles import Dataset, Model
from runner.catalogue.class_description import nested_roles
from runner.compose.pairs import nested_components
from runner.errors import ConfigError

vi = partial(compose_component, "inference", "vi")


@pytest.mark.parametrize(("optimizer", "lr"), [("adam", 0.01), ("sgd", 0.002)])
def test_affine_model_reaches_ppca_likelihood(optimizer, lr):
    """Tipping and Bishop (1999), eqs. (7), (8): σ² is the mean of the discarded eigenvalues, and W
    uses the retained ones minus σ²."""
    problem = real_rows(n=80)
    values = torch.linalg.eigvalsh(torch.cov(problem.train.x.T, correction=0)).flip(0)
    late_mean = values[2:].mean()
    # mean log-likelihood
    best = -0.5 * float(
        4 * math.log(2 * math.pi) + values[:2].log().sum() + 2 * late_mean.log() + 4
    )
    inference = vi(optimizer=optimizer, lr=lr, n_samples=4)
    state, rng = train(inference, component("model", "vae", latent_dim=2, widths=[]), problem, 1500)
    evidence = log_evidence(state.module, problem.train.x).mean()
    assert float(evidence) == pytest.approx(best, abs=0.01)
    problem.test = problem.train
    scores = problem.score(inference.posterior(state), rng)
    assert -scores["nelbo"] == pytest.approx(best, abs=0.05)
    assert scores["nll_bound"] <= scores["nelbo"]


# the gradient as a component of the inference
def test_gradient_part_uses_samples_of_method(make_job):
    keys = ["+experiment=vae_digits", "smoke=true", "inference.n_samples=3"]
    job = make_job(*keys)
    assert nested_roles(type(job.inference)) == {"gradient": "gradient"}
    assert job.config["inference"]["gradient"] == {"name": "reparam", "n_samples": 3}
    paths = [path for path, _ in nested_components(job.inference, "inference")]
    assert paths == ["inference.gradient"]
    job_alone = make_job(*keys, "inference.gradient={name: reparam, n_samples: 2}")
    assert (job_alone.inference.n_samples, job_alone.inference.gradient.n_samples) == (3, 2)
    assert job_alone.signature != job.signature
    assert Pathwise in job.inference.required_capabilities("unlabelled")


class OfCounts(Dataset):
    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "count"


class WithoutNoise(Model):
    requires = Requirements(kinds=frozenset({"unlabelled"}))
    offers: ClassVar[frozenset[type]] = frozenset({LogRatio})


def test_incompatible_pairs_are_refused():
    images = component("dataset", "images")
    vae = component("model", "vae")
    with pytest.raises(
        ConfigError,
        match=r"model=vae .* binary or real; dataset=counts",
    ):
        check_pairs(OfCounts(name="counts"), vae, vi(), None)
    with pytest.raises(
        ConfigError, match=r"inference.gradient=reparam requires pathwise, which model=dull lacks"
    ):
        check_pairs(images, WithoutNoise(name="dull"), vi(), None)
    check_pairs(images, vae, vi(), None)
