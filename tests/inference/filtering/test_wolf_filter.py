"""The weighted-observation-likelihood filter: equations, limit, and bounded influence."""

import math

import pytest
import torch
from support.runs.configured import component, load
from support.series.small_sequences import gappy, run, run_filter, sequence, system
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams

WEIGHTS = ("imq", "md", "tmd")


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("apart", [False, True])
def test_infinite_threshold_gives_kalman_filter(weight, apart):
    problem = gappy(7, 2, apart)
    model = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", problem)
    wolf = component("inference", "wolf_filter", weight=weight, soft_threshold=1e200)
    actual = run(wolf, model, problem, Streams(0))
    for field in ("mean", "variance", "predicted", "log_normaliser"):
        assert_close(vars(actual)[field], vars(exact)[field], rtol=1e-14, atol=1e-14)
    assert not actual.evidence


def weight_of(kind, v, Sigma, c):
    """Weight of one observation, as published."""
    d2 = float(v @ torch.linalg.inv(Sigma) @ v)
    if kind == "tmd":
        return float(d2 <= c**2)
    return (1 + (float(v @ v) if kind == "imq" else d2) / c**2) ** -0.5


@pytest.mark.parametrize("weight", WEIGHTS)
def test_update_matches_weighted_precision_form(weight):
    s = system()
    problem = sequence(s, 6, 1)
    problem.observations[0, 2] += 9.0
    c = 1.7
    wolf = component("inference", "wolf_filter", weight=weight, soft_threshold=c)
    actual = run(wolf, LinearGaussianModule(s), problem, Streams(0))
    m = s.m0
    P = s.P0
    inverse = torch.linalg.inv(s.Sigma)
    log_normaliser = 0.0
    for t in range(6):
        m = s.A @ m
        P = s.A @ P @ s.A.T + s.Q
        v = problem.observations[0, t] - s.H @ m
        w2 = weight_of(weight, v, s.Sigma, c) ** 2
        prior_mean = m
        P_before = P
        P = torch.linalg.inv(torch.linalg.inv(P) + w2 * s.H.T @ inverse @ s.H)
        m = m + w2 * P @ s.H.T @ inverse @ v
        assert_close(actual.mean[0, t], m, rtol=1e-10, atol=1e-10)
        assert_close(actual.variance[0, t], P.diagonal(), rtol=1e-10, atol=1e-10)
        # log ∫ N(y | Hx, Σ)^w² N(x | m⁻, P⁻) dx by completing the square at the new mean
        prior = torch.distributions.MultivariateNormal(prior_mean, P_before).log_prob(m)
        log_density = torch.distributions.MultivariateNormal(s.H @ m, s.Sigma).log_prob(
            problem.observations[0, t]
        )
        after = torch.distributions.MultivariateNormal(m, 0.5 * (P + P.T)).log_prob(m)
        log_normaliser += float(prior + w2 * log_density - after)
    assert float(actual.log_normaliser[0]) == pytest.approx(log_normaliser, rel=1e-9)


def mean_shift(inference, outlier):
    """Distance of the last mean from its value without the last observation."""
    problem = sequence(system(), 4, 1)
    problem.observations[0, 3] = problem.observations[0, 3] + outlier
    model = LinearGaussianModule(problem.system)
    result = run(inference, model, problem, Streams(0))
    problem.observations[0, 3] = math.nan
    return float((result.mean - run(inference, model, problem, Streams(0)).mean)[0, 3].norm())


@pytest.mark.parametrize("weight", WEIGHTS)
def test_outlier_shifts_mean_by_bounded_amount(weight):
    wolf = component("inference", "wolf_filter", weight=weight, soft_threshold=2.0)
    shifts = [mean_shift(wolf, 10.0**k) for k in range(9)]
    assert max(shifts) < 5.0
    assert shifts[-1] <= shifts[2] + 1e-12
    kalman = [mean_shift(component("inference", "kalman"), 10.0**k) for k in (3, 6)]
    assert kalman[1] > 900 * kalman[0] > 10 * max(shifts)


def test_expected_observations_give_extended_filter():
    problem, rng = load("nonlinear_growth", replicates=3, n_steps=20)
    model = component("model", "nonlinear_growth").build(problem, rng)
    wolf = run(component("inference", "wolf_filter", soft_threshold=1e200), model, problem, rng)
    extended = run(component("inference", "extended_kalman"), model, problem, rng)
    assert_close(wolf.mean, extended.mean)
