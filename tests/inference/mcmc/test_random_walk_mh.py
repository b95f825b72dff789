import math

import pytest
import torch
from support.runs.configured import (
    component,
    double,
    draw_normal,
    draw_uniform,
    generator,
    normal,
    uniform,
)
from support.targets.exact_targets import (
    HalfNormal,
)
from support.targets.known_targets import (
    F64,
    correlated_gaussian,
    moment_z,
    run_chains,
    sample_target,
)
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.mcmc.adaptation import factor, updated_moments
from components.inference.mcmc.metropolis import metropolis_hastings
from runner.execution.rng import Streams


def test_acceptance_matches_literal_ratio():
    value, proposed, correction = draw_normal(3, 500)
    proposed[:20] = -math.inf
    correction[:10] = math.nan  # result of a gradient outside the support
    accept, alpha = metropolis_hastings(value, proposed, correction, 1, generator(1))
    u = draw_uniform(500, seed=1)
    ratio = proposed.exp() * correction.exp() / value.exp()
    literal = torch.where(proposed.exp() == 0, 0.0, ratio.clamp(max=1))
    assert_close(alpha, literal, rtol=1e-12, atol=0)
    assert torch.equal(accept, u < literal)
    assert not accept[:20].any()


def test_step_matches_random_walk():
    target = correlated_gaussian()
    C = 6
    rng = Streams(3)
    method = component("inference", "random_walk_mh", chains=C, warmup=30)
    state, _ = run_chains(method, target, 30, rng)
    unit = torch.eye(2, dtype=F64)
    covariance = state.proposal.moments["covariance"] + method.regularisation * unit
    L = torch.linalg.cholesky(covariance)
    s = state.proposal.log_step.exp()[:, None]
    literal = Streams(0)
    literal.restore(rng.state())
    theta = state.theta.clone()
    for _ in range(20):
        proposal = theta + s / math.sqrt(2) * normal(literal.noise, C, 2) @ L.T
        u = uniform(literal.noise, C)
        ratio = (target.log_prior(proposal) - target.log_prior(theta)).exp()
        theta = torch.where((u < ratio)[:, None], proposal, theta)
        state, _ = method.step(state, None, rng)
        assert_close(state.theta, theta, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("forgetting", [0.0, 3.0])
@pytest.mark.parametrize("shape", ["dense", "diagonal"])
def test_moments_are_weighted_over_all_states(shape, forgetting):
    g = generator(0)
    states = normal(g, 15, 4, 3)  # [T, C, P]
    unit = torch.eye(3, dtype=F64) if shape == "dense" else torch.ones(3, dtype=F64)
    moments = {"mean": states[0].mean(0), "covariance": unit}
    for t, theta in enumerate(states, 1):
        moments = updated_moments(moments, theta, t, forgetting)
    # Literal weights of the initial N(mean of the starts, I) and of the states of each step.
    weights = torch.zeros(16, dtype=F64)
    weights[0] = 1
    for t in range(1, 16):
        w = (1 + forgetting) / (t + 1 + forgetting)
        weights *= 1 - w
        weights[t] = w
    if forgetting == 0:
        # Haario: equal weights
        assert_close(weights, torch.full((16,), 1 / 16, dtype=F64))
    rows = torch.cat([states[0].mean(0, keepdim=True), states.flatten(0, 1)])
    each = torch.cat([weights[:1], (weights[1:] / 4).repeat_interleave(4)])
    covariance = rows.T.cov(correction=0, aweights=each) + weights[0] * torch.eye(3, dtype=F64)
    assert_close(moments["mean"], each @ rows)
    assert_close(moments["covariance"], covariance if shape == "dense" else covariance.diagonal())
    L = factor(moments["covariance"], 0.1)
    square = L @ L.T if shape == "dense" else L**2
    assert_close(square, moments["covariance"] + 0.1 * unit)


def test_no_warm_up_keeps_configured_proposal():
    method = component("inference", "random_walk_mh", chains=3, warmup=0, step_size=0.7)
    state, info = run_chains(method, correlated_gaussian(), 5)
    assert float(info["step_size"]) == pytest.approx(0.7)
    assert torch.equal(state.proposal.factor, torch.eye(2, dtype=F64))
    assert method.posterior(state).n_draws == 5


def test_random_walk_requires_no_gradient():
    class NotDifferentiable(HalfNormal):
        def log_prior(self, theta):
            return super().log_prior(theta.detach())

    model = NotDifferentiable()
    assert moment_z(sample_target("random_walk_mh", model, 1000, chains=100, warmup=300), model) < 4


@pytest.mark.parametrize(
    ("size", "message"),
    [(1e231, "chains diverged .* with a finite integral"), (1e12, "no Cholesky factor")],
)
def test_diverged_chains_are_distinguished_from_rounding(size, message):
    with pytest.raises(NumericalError, match=message):
        factor(size * double([[1.0, 1.0], [1.0, 1.0 - 1e-9]]), 1e-10)
