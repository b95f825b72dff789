"""Bounds and draws of the posterior of a series' two standard deviations, compared with integrals
on a grid."""

import math
from functools import cache

import pytest
import torch
from support.runs.configured import F64, component, compose_component, load
from support.targets.refined_targets import train_refined, vis

from components.inference.log_joint import log_joint
from runner.execution.rng import Streams

DLM = component("model", "dlm", trend="autoregressive", period=None)
LEVELS = (81, 81)


@cache
def exact():
    """log p(x), and mean and standard deviation of θ, by the trapezium rule."""
    problem, _ = load("dlm_sim", n_steps=43, n_ahead=3)
    model = DLM.build(problem, Streams(0))
    axes = [
        torch.linspace(low, high, n, dtype=F64)
        for n, low, high in zip(LEVELS, (-9, -4), (2.5, 3), strict=True)
    ]
    theta = torch.cartesian_prod(*axes)
    cell = math.prod(float(axis[1] - axis[0]) for axis in axes)
    value = log_joint(model, theta, problem.series).detach()
    weights = value.softmax(0).unsqueeze(1)
    mean = (weights * theta).sum(0)
    return (
        problem,
        float(value.logsumexp(0)) + math.log(cell),
        mean,
        (weights * (theta - mean).square()).sum(0).sqrt(),
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"refine_steps": 0},
        pytest.param(
            {"refine_steps": 2, "entropy": "jacobian", "eta": 0.004}, marks=pytest.mark.slow
        ),
    ],
)
def test_bounds_are_slightly_below_evidence(keys):
    problem, evidence, _, _ = exact()
    inference = vis(
        kernel="sgd", covariance="full", n_samples=4, lr=0.05, draws=200, initial_std=0.3, **keys
    )
    state, _, _ = train_refined(inference, DLM, problem, 200)
    posterior = inference.posterior(state)
    scores = posterior.scores()
    assert set(scores) >= {"nelbo"}
    assert evidence - 1.2 < -scores["nelbo"] < evidence + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nuts"])
def test_draws_have_moments_of_integral(name):
    problem, _, mean, sd = exact()
    inference = compose_component("inference", name, warmup=200, chains=4)
    state, _, _ = train_refined(inference, DLM, problem, 600)
    draws = inference.posterior(state).draws  # [C, N, P]
    error = (draws.mean((0, 1)) - mean) / sd
    assert error.abs().max() < 0.25
    assert torch.allclose(draws.flatten(0, 1).std(0), sd, rtol=0.25)
