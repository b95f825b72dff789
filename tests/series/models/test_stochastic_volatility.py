"""Stochastic volatility compared with numerical integration."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load
from support.series.small_sequences import run
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.stochastic_volatility import VolatilityModule
from runner.execution.rng import Streams

KEYS = {"mu": -0.5, "phi": 0.9, "sigma": 0.5}
T = 6
REPLICATES = 4000
PARTICLES = 60


def series():
    """One series of returns, observed by every replicate."""
    problem, rng = load("stochastic_volatility", seed=3, n_steps=T, **KEYS)
    problem.observations[0, 2] = 4.0  # a return that is improbable under the prior
    problem.observations = problem.observations.expand(REPLICATES, -1, -1).contiguous()
    problem.replicates = REPLICATES
    return problem, component("model", "stochastic_volatility").build(problem, rng)


def exact_log_evidence(y):
    """log ∫ p(x_0) ∏ p(x_t | x_{t−1}) p(y_t | x_t) dx on a grid of x over ten stationary standard
    deviations on both sides."""
    mu = KEYS["mu"]
    phi = KEYS["phi"]
    sigma = KEYS["sigma"]
    sd = sigma / math.sqrt(1 - phi**2)
    x = torch.linspace(mu - 10 * sd, mu + 10 * sd, 1501, dtype=F64)
    dx = x[1] - x[0]

    def normal(value, mean, s):
        return torch.exp(-0.5 * ((value - mean) / s) ** 2) / (s * math.sqrt(2 * math.pi))

    move = normal(x[:, None], mu + phi * (x[None, :] - mu), sigma)  # [to, from]
    density = normal(x, mu, sd)
    log_evidence = 0.0
    for value in y:
        density = (move @ density) * dx * normal(double(value), 0.0, torch.exp(x / 2))
        total = float(density.sum() * dx)
        density = density / total
        log_evidence = log_evidence + math.log(total)
    return log_evidence


def ratio(problem, model, resample_below):
    """Ratio of the evidence estimated by each replicate to the exact one; its expectation is 1."""
    inference = component(
        "inference", "bootstrap_filter", particles=PARTICLES, resample_below=resample_below
    )
    got = run(inference, model, problem, Streams(7))
    return (got.log_normaliser - exact_log_evidence(problem.observations[0, :, 0].tolist())).exp()


@pytest.mark.parametrize("resample_below", [0.0, 0.5, 1.0])
def test_evidence_is_unbiased(resample_below):
    assert abs(z_score(ratio(*series(), resample_below), 1.0)) < 4


class WithoutScale(VolatilityModule):
    """Broken: the weight lacks the −x/2 of the normal density with standard deviation exp(x/2)."""

    def log_observation(self, y, x, t):
        return super().log_observation(y, x, t) + 0.5 * x.squeeze(-1)


class Squared(VolatilityModule):
    """Broken: the weight uses exp(x) as the standard deviation."""

    def log_observation(self, y, x, t):
        return super().log_observation(y, 2 * x, t)


@pytest.mark.parametrize("broken", [WithoutScale, Squared])
def test_wrong_weight_is_biased(broken):
    problem, _ = series()
    model = broken(**KEYS, like=problem.observations)
    assert abs(z_score(ratio(problem, model, 1.0), 1.0)) > 10


def test_moves_follow_the_evaluated_density():
    _, model = series()
    g = generator(0)
    previous = torch.full((1, 200_000, 1), 0.7, dtype=F64)
    after = model.transition(previous, 1, g)
    mean = KEYS["mu"] + KEYS["phi"] * (0.7 - KEYS["mu"])
    sd = KEYS["sigma"]
    assert abs(z_score(after.flatten(), mean)) < 4
    assert after.std() == pytest.approx(sd, rel=0.01)
    literal = torch.distributions.Normal(mean, sd).log_prob(after).squeeze(-1)
    assert_close(model.log_transition(after, previous, 1), literal)
    start = model.init((1, 200_000), g).flatten()
    assert abs(z_score(start, KEYS["mu"])) < 4
    assert start.std() == pytest.approx(sd / math.sqrt(1 - KEYS["phi"] ** 2), rel=0.01)


@pytest.mark.parametrize("power", [1.0, 1.05, 1.5, 2.0])
def test_power_integral_matches_quadrature(power):
    _, model = series()
    x = double([[[-1.0], [0.3], [1.2]]])
    y = torch.linspace(-40, 40, 40_001, dtype=F64)
    # [y, 3]
    density = model.log_observation(y.view(-1, 1), x.expand(len(y), -1, -1), 1).mul(power).exp()
    assert_close(
        model.log_power_integral(x, 1, power)[0].exp(),
        density.sum(0) * (y[1] - y[0]),
        rtol=1e-8,
        atol=0,
    )


def test_scores_have_the_evidence_only_for_likelihoods():
    problem, rng = load("stochastic_volatility", replicates=3, n_steps=10)
    model = component("model", "stochastic_volatility").build(problem, rng)
    for name, keys, present in [
        ("bootstrap_filter", {}, True),
        ("beta_bootstrap_filter", {"beta": 0.0}, True),
        ("beta_bootstrap_filter", {"beta": 0.1}, False),
    ]:
        scores = problem.score(
            run(component("inference", name, particles=50, **keys), model, problem, rng), rng
        )
        assert ("log_evidence" in scores) == present
