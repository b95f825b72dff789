from __future__ import annotations

import math

import pytest
import torch
from support.runs.configured import component, double, generator, normal
from support.targets.exact_targets import (
    TARGETS,
    HalfNormal,
    TwoModes,
    check_edges,
    check_warm_up,
    mutate,
    without_jacobian,
)
from support.targets.known_targets import F64, correlated, moment_z, sampled
from support.targets.rank_test import NormalGamma, rank_p, two_sample_p
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.mcmc import random_walk_mh
from components.inference.mcmc.adaptation import factor, updated_moments
from components.inference.mcmc.metropolis import metropolis_hastings
from runner.execution.rng import Streams

FIXED = {"warmup": 0, "step_size": 1.5}


def test_accept_step_is_the_literal_ratio():
    g = generator(0)
    value, proposed, correction = normal(g, 3, 500)
    proposed[:20] = -math.inf
    correction[:10] = math.nan  # what a gradient outside the support gives
    accept, alpha = metropolis_hastings(value, proposed, correction, 1, generator(1))
    u = torch.rand(500, generator=generator(1), dtype=F64)
    for c in range(500):
        pi, pi_new = math.exp(value[c]), math.exp(proposed[c])
        literal = 0.0 if pi_new == 0 else min(1.0, pi_new * math.exp(correction[c]) / pi)
        assert float(alpha[c]) == pytest.approx(literal, rel=1e-12)
        assert bool(accept[c]) == (u[c] < literal)
    assert not accept[:20].any()


def test_a_step_is_the_literal_random_walk():
    target, C, rng = correlated(), 6, Streams(3)
    method = component("inference", "random_walk_mh", chains=C, warmup=30)
    state = method.init(target, None, rng)
    for _ in range(30):
        state, _ = method.step(state, None, rng)
    covariance = state.proposal.moments["covariance"] + method.regularisation * torch.eye(
        2, dtype=F64
    )
    L, s = torch.linalg.cholesky(covariance), state.proposal.log_step.exp()
    literal = Streams(0)
    literal.restore(rng.state())
    theta = state.theta.clone()
    for _ in range(20):
        z = normal(literal.noise, C, 2)
        u = torch.rand(C, generator=literal.noise, dtype=F64)
        for c in range(C):
            proposal = theta[c] + s[c] / math.sqrt(2) * (L @ z[c])
            ratio = (target.log_prior(proposal[None]) - target.log_prior(theta[c][None])).exp()
            if u[c] < min(1.0, float(ratio)):
                theta[c] = proposal
        state, _ = method.step(state, None, rng)
        assert_close(state.theta, theta, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("forgetting", [0.0, 3.0])
@pytest.mark.parametrize("shape", ["dense", "diagonal"])
def test_moments_are_weighted_moments_of_all_states(shape, forgetting):
    g = generator(0)
    states = normal(g, 15, 4, 3)  # [T, C, P]
    unit = torch.eye(3, dtype=F64) if shape == "dense" else torch.ones(3, dtype=F64)
    moments = {"mean": states[0].mean(0), "covariance": unit}
    for t, theta in enumerate(states, 1):
        moments = updated_moments(moments, theta, t, forgetting)
    # Weights of the initial N(mean of the starts, I) and of each step's states, unrolled.
    weights = torch.zeros(16, dtype=F64)
    weights[0] = 1
    for t in range(1, 16):
        w = (1 + forgetting) / (t + 1 + forgetting)
        weights *= 1 - w
        weights[t] = w
    if forgetting == 0:
        # Haario: all alike
        assert_close(weights, torch.full((16,), 1 / 16, dtype=F64))
    mean = weights[0] * states[0].mean(0) + (weights[1:, None, None] * states).sum(0).mean(0)
    start = states[0].mean(0) - mean
    covariance = weights[0] * (torch.eye(3, dtype=F64) + torch.outer(start, start))
    for w, theta in zip(weights[1:], states, strict=True):
        for row in theta - mean:
            covariance = covariance + w / 4 * torch.outer(row, row)
    assert_close(moments["mean"], mean)
    assert_close(moments["covariance"], covariance if shape == "dense" else covariance.diagonal())
    L = factor(moments["covariance"], 0.1)
    square = L @ L.T if shape == "dense" else L**2
    assert_close(square, moments["covariance"] + 0.1 * unit)


@pytest.mark.parametrize("target", TARGETS)
def test_moments_are_those_of_the_target(target):
    model = TARGETS[target]()
    draws = sampled("random_walk_mh", model, 1300, chains=200, warmup=400)
    assert moment_z(draws, model) < 4


@pytest.mark.parametrize("mutant", ["half the log ratio", "everything accepted"])
def test_a_wrong_accept_ratio_is_seen(monkeypatch, mutant):
    mutate(monkeypatch, random_walk_mh, mutant)
    model = TwoModes()
    settings = {"adapt_step_size": False, "covariance": "identity"}
    assert (
        moment_z(sampled("random_walk_mh", model, 1300, chains=200, warmup=400, **settings), model)
        > 4
    )
    assert rank_p("random_walk_mh", NormalGamma(), **FIXED) < 1e-6


def test_a_missing_jacobian_is_seen():
    model = without_jacobian()
    assert moment_z(sampled("random_walk_mh", model, 1300, chains=200, warmup=400), model) > 4


def test_the_kernel_leaves_every_posterior_invariant():
    assert rank_p("random_walk_mh", NormalGamma(), replications=10_000, **FIXED) > 1e-3
    assert two_sample_p("random_walk_mh", NormalGamma(), **FIXED) > 1e-3


def test_rank_test_sees_a_density_without_its_jacobian():
    class WithoutJacobian(NormalGamma):
        def log_prior(self, theta):
            return super().log_prior(theta) - theta[:, 1]

    assert rank_p("random_walk_mh", WithoutJacobian(), **FIXED) < 1e-6
    assert two_sample_p("random_walk_mh", WithoutJacobian(), steps=20, **FIXED) < 1e-6


def test_warm_up_learns_the_proposal_and_then_lets_it_be():
    draws = check_warm_up("random_walk_mh", 1500, 1700, 0.234)
    assert draws.n_draws == 200  # none of the warm-up is kept
    assert set(draws.stats) == {"lp", "acceptance_rate", "step_size"}
    assert all(s.shape == (16, 200) for s in draws.stats.values())


def test_no_warm_up_leaves_the_proposal_as_configured():
    target, rng = correlated(), Streams(0)
    method = component("inference", "random_walk_mh", chains=3, warmup=0, step_size=0.7)
    state = method.init(target, None, rng)
    for _ in range(5):
        state, info = method.step(state, None, rng)
    assert float(info["step_size"]) == pytest.approx(0.7)
    assert torch.equal(state.proposal.factor, torch.eye(2, dtype=F64))
    assert method.posterior(state).n_draws == 5


def test_no_density_is_a_rejection_and_nan_is_trouble():
    check_edges("random_walk_mh", 5.0)


def test_needs_no_gradient():
    class NotDifferentiable(HalfNormal):
        def log_prior(self, theta):
            return super().log_prior(theta.detach())

    model = NotDifferentiable()
    assert moment_z(sampled("random_walk_mh", model, 1000, chains=100, warmup=300), model) < 4


@pytest.mark.parametrize(
    ("size", "said"),
    [(1e231, "run away .* whose integral is finite"), (1e12, "no Cholesky factor")],
)
def test_chains_that_ran_away_are_told_from_rounding(size, said):
    with pytest.raises(NumericalError, match=said):
        factor(size * double([[1.0, 1.0], [1.0, 1.0 - 1e-9]]), 1e-10)
