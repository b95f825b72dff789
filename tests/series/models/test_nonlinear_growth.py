"""The nonlinear growth model compared with its equations and numerical integration."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.series.small_sequences import run
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.nonlinear_growth import GrowthModule, GrowthPriors
from runner.execution.rng import Streams

T = 5
REPLICATES = 3000
PARTICLES = 80
Normal = torch.distributions.Normal


def model(problem, **unknown):
    priors = GrowthPriors(**({"state_sd": None, "observation_sd": None} | unknown))
    return component("model", "nonlinear_growth", unknown=priors).build(problem, Streams(0))


def series():
    """One series, observed by every replicate."""
    problem, _ = load("nonlinear_growth", seed=2, n_steps=T)
    problem.observations = problem.observations.expand(REPLICATES, -1, -1).contiguous()
    problem.replicates = REPLICATES
    return problem


def exact_log_evidence(y):
    """log ∫ p(x_0) ∏ p(x_t | x_{t−1}) p(y_t | x_t) dx on a grid of x."""
    x = torch.linspace(-60, 60, 2401, dtype=F64)
    dx = x[1] - x[0]
    density = Normal(0.0, math.sqrt(5)).log_prob(x).exp()
    total = 0.0
    for t, value in enumerate(y, 1):
        mean = x / 2 + 25 * x / (1 + x**2) + 8 * math.cos(1.2 * t)
        move = Normal(mean[None, :], math.sqrt(10)).log_prob(x[:, None]).exp()  # [to, from]
        density = (move @ density) * dx * Normal(x**2 / 20, 1.0).log_prob(torch.tensor(value)).exp()
        mass = float(density.sum() * dx)
        density = density / mass
        total = total + math.log(mass)
    return total


class DriftAStepLate(GrowthModule):
    """Broken: 8 cos 1.2 (t − 1)."""

    def transition(self, x, t, generator):
        return super().transition(x, t - 1, generator)


class NotTheSquare(GrowthModule):
    """Broken: y = x/20."""

    def observation_mean(self, x, t):
        return x / 20


@pytest.mark.parametrize(
    ("kind", "right"), [(GrowthModule, True), (DriftAStepLate, False), (NotTheSquare, False)]
)
def test_evidence_is_unbiased(kind, right):
    problem = series()
    sd = [problem.observations.new_tensor(v) for v in (math.sqrt(10), 1.0)]
    inference = component("inference", "bootstrap_filter", particles=PARTICLES)
    got = run(inference, kind(0.0, 5.0, *sd), problem, Streams(1))
    ratio = (got.log_normaliser - exact_log_evidence(problem.observations[0, :, 0].tolist())).exp()
    z = abs(float(z_score(ratio, 1.0)))
    assert (z < 4) if right else (z > 8)


def test_series_follow_the_equations():
    problem, _ = load("nonlinear_growth", 3, 4000, n_steps=3)
    x = problem.states[0, :, 0]
    assert z_score((problem.observations[..., 0] - x.square() / 20).flatten(), 0.0).abs() < 4
    paths = torch.stack(
        [load("nonlinear_growth", seed, 1, n_steps=2)[0].states[0, :, 0] for seed in range(1500)]
    )
    previous, after = paths.T
    drive = after - (previous / 2 + 25 * previous / (1 + previous**2) + 8 * math.cos(2.4))
    assert z_score(drive, 0.0).abs() < 4
    assert z_score(drive.square(), 10.0).abs() < 4
    assert problem.system.parameters == {
        "state_sd": pytest.approx(math.sqrt(10)),
        "observation_sd": 1.0,
    }


def test_densities_and_moments_equal_formulas():
    module = model(load("nonlinear_growth", n_steps=4)[0])
    x = torch.linspace(-9, 9, 7, dtype=F64).view(1, 7, 1)
    previous = x.flip(1) + 0.3
    t = 3
    mean = previous / 2 + 25 * previous / (1 + previous**2) + 8 * math.cos(1.2 * t)
    assert_close(module.transition_mean(previous, t), mean)
    assert_close(module.log_transition(x, previous, t), Normal(mean, 10**0.5).log_prob(x)[..., 0])
    y = double([[1.7]])
    assert_close(module.log_observation(y, x, t), Normal(x**2 / 20, 1.0).log_prob(y)[..., 0])
    assert module.log_observation_bound(t) == pytest.approx(-0.5 * math.log(2 * math.pi))
    assert float(module.Q) == pytest.approx(10)
    shapes = [value.shape for value in (module.Q, module.Sigma, module.m0, module.P0)]
    assert shapes == [(1, 1), (1, 1), (1,), (1, 1)]
    grid = torch.linspace(-30, 30, 30_001, dtype=F64)
    density = Normal(2.0, 1.0).log_prob(grid).mul(1.3).exp().sum() * (grid[1] - grid[0])
    assert_close(module.log_power_integral(x, t, 1.3).exp(), density, rtol=1e-8, atol=0)


def test_models_in_a_batch_have_their_own_scales():
    law = {"law": "log_normal", "median": 2.0, "spread": 0.5}
    problem, _ = load("nonlinear_growth", n_steps=4, replicates=2)
    module = model(problem, state_sd=law, observation_sd=law)
    assert float(module.Q) == pytest.approx(4)
    theta = double([[0.1, -0.2], [0.5, 0.7]])
    together = module.at(theta)
    x = torch.randn(2, 6, 1, dtype=F64)
    for k, (s, o) in enumerate(theta.exp()):
        alone = GrowthModule(0.0, 5.0, s, o)
        rows = slice(k, k + 1)
        y = problem.observations[:, 0]
        pairs = (
            (together.log_observation(y, x, 1), alone.log_observation(y[rows], x[rows], 1)),
            (together.log_transition(x, x + 1, 2), alone.log_transition(x, x + 1, 2)[rows]),
        )
        for both, marginal in pairs:
            assert_close(both[rows], marginal)
        powers = [m.log_power_integral(x, 1, 1.5).expand(2, 6)[k] for m in (together, alone)]
        assert_close(*powers)
    assert together.Q.shape == (2, 1, 1)
