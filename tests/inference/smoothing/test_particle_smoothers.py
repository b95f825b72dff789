"""Particle smoothers against the joint Gaussian of the whole series, as the Rauch-Tung-Striebel smoother has it."""

from __future__ import annotations

import math

import pytest
import torch
from configured import component
from exact_smoothing import smoothed
from known_targets import z_score
from small_sequences import run, sequence

from components.models.state_space.linear_gaussian_ssm import LinearGaussianModule
from components.problems.sequence import LinearGaussianSystem, Sequence
from runner.run.rng import Streams

SMOOTHERS = ["ffbs", "ffbsi"]
T, R, N = 6, 60, 600


def matrix(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


# Observations leave many particles with weight: quantiles of few are biased.
GENTLE = LinearGaussianSystem(
    A=matrix([0.9, 0.4], [-0.2, 0.8]), Q=matrix([0.5, 0.2], [0.2, 0.4]), H=matrix([1.0, 0.5]), Sigma=matrix([1.5]),
    m0=matrix([1.0, -1.0])[0], P0=matrix([1.0, -0.3], [-0.3, 0.8]),
)  # fmt: skip


def smoother(name: str, particles: int = N, **filter_keys):
    keys = {"trajectories": particles} if name == "ffbsi" else {}
    chosen = "beta_bootstrap_filter" if "beta" in filter_keys else "bootstrap_filter"
    return component(
        "inference", name, filter=component("inference", chosen, particles=particles, **filter_keys), **keys
    )


def gappy(missing: bool) -> Sequence:
    problem = sequence(GENTLE, T, R)
    if missing:
        problem.observations[:, 2] = math.nan
        problem.observations[:, 4] = math.nan
    return problem


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", SMOOTHERS)
def test_smoothing_distributions_are_those_of_the_joint_gaussian(name, missing):
    problem = gappy(missing)
    got = run(smoother(name), LinearGaussianModule(problem.system), problem, Streams(3))
    exact = smoothed(problem.system, problem.observations[0])
    assert z_score(got.mean, exact.mean).abs().max() < 4.5
    assert z_score(got.variance, exact.variance).abs().max() < 4.5
    quantile = 1.6448536269514722 * exact.variance.sqrt()
    for found, true in ((got.lower, exact.mean - quantile), (got.upper, exact.mean + quantile)):
        assert (found.mean(0) - true).abs().max() < 0.08  # quantiles of finitely many particles are biased
    s = problem.system
    expected, spread = exact.mean @ s.H.T, (s.H @ exact.covariance @ s.H.T + s.Sigma).diagonal(dim1=1, dim2=2)
    assert z_score(got.signal.mean, expected).abs().max() < 4.5
    assert (got.signal.upper.mean(0) - expected - 1.6448536269514722 * spread.sqrt()).abs().max() < 0.1
    # The filter alone, which has not seen what came later, is far off.
    filtered = run(
        component("inference", "bootstrap_filter", particles=N), LinearGaussianModule(s), problem, Streams(3)
    )
    assert z_score(filtered.mean, exact.mean).abs().max() > 20
