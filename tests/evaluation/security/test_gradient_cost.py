"""A warning names the number of samples with which the plain gradient is cheaper, and only then."""

from __future__ import annotations

import re
import time
import warnings
from typing import ClassVar

import pytest
import torch
from omegaconf import OmegaConf
from support.runs.configured import component
from support.small.small_problems import real, train

from components.contracts.roles import Gradient
from components.contracts.streams import Beside
from components.errors import CheaperMethodWarning
from components.evaluation.checks.gradient_cost import (
    compare_measured,
    compare_with_samples,
    warn_of_cheaper_samples,
)
from components.gradients.pathwise.reparam import Reparam
from components.inference.variational.laboratory.measured import Findings, Measured
from runner import CONF
from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.execution.rng import Streams

LINEAR = component("model", "linear_regression", noise=0.25, prior_scale=1.2, intercept_scale=3.0)


class Thirds(Gradient):
    """The plain gradient of three samples, after a pause: a third of the variance, late."""

    requires = Reparam.requires
    unbiased: ClassVar[bool] = True
    pause: float
    noise: bool  # False: the same draw every time, which has no variance

    def init(self, module, rng):
        return None

    def estimate(self, module, batch, rng, state):
        time.sleep(self.pause)
        streams = rng if self.noise else Beside(Streams(0), 1)
        return Reparam(name="reparam", n_samples=3).estimate(module, batch, streams, state)


@pytest.fixture(scope="module")
def trained():
    problem = real(n=24, n_tasks=1, missing=0.0, batch_size=6)
    values = OmegaConf.to_container(OmegaConf.load(CONF / "inference/gaussian_vi.yaml"))
    small = {"covariance": "diagonal", "noise": "rows", "draws": 10, "initial_std": 0.3}
    inference = build_component(
        "inference", expand_component("inference", values | small, "inference"), "inference"
    )
    state, rng = train(inference, LINEAR, problem, 2)
    return problem, inference, state, rng


def thirds(pause=0.004, noise=True):
    return Thirds(name="thirds", pause=pause, noise=noise)


def test_of_a_slow_estimator_the_samples_with_its_variance_are_named(trained):
    problem, _, state, rng = trained
    message = compare_with_samples(thirds(), state, problem, rng)
    assert "with S = 4 samples is cheaper" in message
    variance = re.search(r"gradient=thirds has (\S+) of the variance", message)
    assert float(variance[1]) == pytest.approx(1 / 3, rel=0.3)
    assert "S = 4 has 0.25 in" in message


def test_an_estimator_that_is_cheaper_or_plain_is_left_alone(trained):
    problem, _, state, rng = trained
    for gradient in (
        Reparam(name="reparam", n_samples=1),
        thirds(noise=False),
        component("gradient", "reinforce"),
    ):
        assert compare_with_samples(gradient, state, problem, rng) is None


def test_a_run_warns_after_its_first_replicate_and_its_streams_stay(trained):
    problem, inference, state, rng = trained
    slow = inference.model_copy(update={"gradient": thirds()})
    before = rng.noise.get_state()
    with pytest.warns(CheaperMethodWarning, match="S = 4 samples is cheaper"):
        warn_of_cheaper_samples(problem, None, slow, state, {}, rng)
    assert torch.equal(rng.noise.get_state(), before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_cheaper_samples(problem, None, inference, state, {}, rng)
        warn_of_cheaper_samples(problem, None, slow, state, {}, rng.of(1))


def test_message_of_a_laboratory_names_the_cheapest_samples_and_what_is_dearer():
    scores = {
        "variance_seconds/reparam n_samples=1/10": 1.0,
        "variance_seconds/reparam n_samples=8/10": [0.12, 0.14],
        "variance_seconds/taylor_cv/10": 0.004,
        "variance_seconds/amortised_cv/10": 0.34,
    }
    labels = ["reparam n_samples=1", "reparam n_samples=8", "taylor_cv", "amortised_cv"]
    seen = Measured(labels, [True] * 4, [10, 20], [], Findings(), None)
    assert compare_measured(seen, scores) == (
        "variance × time after 10 steps, over that of reparam n_samples=1: reparam n_samples=8 0.13, "
        "which is cheaper for the same variance than amortised_cv 0.34"
    )
    cheap = scores | {"variance_seconds/amortised_cv/10": 0.1}
    assert compare_measured(seen, cheap) is None
    assert compare_measured(seen, {}) is None
