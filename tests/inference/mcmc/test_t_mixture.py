"""Mixtures of t distributions, compared term by term, and rounds of population Monte Carlo."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import double, draw_normal, draw_uniform, generator, normal, uniform
from support.targets.exact_targets import TwoModes
from support.targets.known_targets import F64, white, z_score
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.mcmc.t_mixture import (
    TMixture,
    fit_mixture,
    truncate_weights,
    update_mixture,
)


def single(centre, factor=1.0):
    """One component with five degrees of freedom."""
    P = len(centre)
    L = factor * torch.eye(P, dtype=F64)
    return TMixture(torch.ones(1, dtype=F64), double([centre]), L[None], 5.0)


def mixture(dof=4.0, D=3, P=2):
    g = generator(1)
    weights = uniform(g, D)
    factors = normal(g, D, P, P).tril() + 2 * torch.eye(P, dtype=F64)
    return TMixture(weights / weights.sum(), 3 * normal(g, D, P), factors, dof)


def t_density(theta, centre, sigma, nu):
    """Density of the multivariate t; the Gaussian if ν is infinite."""
    return np.exp(stats.multivariate_t.logpdf(theta, centre, sigma, nu))


@pytest.mark.parametrize("dof", [4.0, 1.5, math.inf])
def test_density_matches_weighted_sum(dof):
    q = mixture(dof)
    for theta in 4 * draw_normal(5, 2):
        parts = zip(q.weights, q.centres, q.factors, strict=True)
        exact = sum(float(a) * t_density(theta, m, L @ L.T, dof) for a, m, L in parts)
        assert float(q.log_prob(theta[None])) == pytest.approx(np.log(exact).item())


@pytest.mark.parametrize("dof", [6.0, math.inf])
def test_draws_have_moments_of_mixture(dof):
    q = mixture(dof)
    draws = q.draw(40_000, generator())
    spread_out = 1.0 if math.isinf(dof) else dof / (dof - 2)
    mean = q.weights @ q.centres
    second = sum(
        a * (spread_out * L @ L.T + torch.outer(m, m))
        for a, m, L in zip(q.weights, q.centres, q.factors, strict=True)
    )
    products = draws[:, :, None] * draws[:, None]
    for estimate, exact in ((draws, mean), (products, second)):
        z = z_score(estimate, exact)
        assert z.abs().max() < 4


def test_round_matches_literal_update():
    q = mixture()
    n = 40
    P = 2
    nu = 4.0
    theta = q.draw(n, generator())
    weights = draw_uniform(n, seed=2)
    weights /= weights.sum()
    anchor = double([[2.0, 0.3], [0.3, 1.0]])
    after = update_mixture(q, theta, weights, anchor)
    pooled = torch.cov(theta.T, correction=0, aweights=weights)
    few = P / (P + 1 / weights.square().sum())
    pooled = (1 - few) * pooled + few * anchor
    components = list(zip(q.weights, q.centres, q.factors, strict=True))
    terms = torch.stack(
        [a * torch.from_numpy(t_density(theta, m, L @ L.T, nu)) for a, m, L in components]
    )
    for d, (_, m, L) in enumerate(components):
        gap = theta - m
        u = (nu + P) / (nu + (gap @ torch.linalg.inv(L @ L.T) * gap).sum(1))
        shares = weights * terms[d] / terms.sum(0)  # w ρ
        alpha = shares.sum()
        centre = shares * u @ theta / (shares @ u)
        around = theta - centre
        covariance = around.T @ ((shares * u)[:, None] * around) / alpha
        share = P / (P + alpha**2 / shares.square().sum())
        assert_close(after.weights[d], alpha)
        assert_close(after.centres[d], centre)
        sigma = (1 - share) * covariance + share * pooled
        assert_close(after.factors[d] @ after.factors[d].T, sigma)


def test_both_modes_are_found_from_one():
    """Components start around one mode, and the rounds move them to both modes of the target."""
    target = TwoModes()
    theta = torch.linspace(-6, 6, 24_001, dtype=F64)[:, None]
    below = float(target.log_prior(theta).softmax(0) @ (theta[:, 0] < 0).double())
    q = fit_mixture(target, None, single([2.0]), 6, 8, 2000, generator())
    share = (q.draw(20_000, generator())[:, 0] < 0).double().mean()
    assert float(share) == pytest.approx(below, abs=0.05)


def test_large_weight_is_truncated():
    log_weight = torch.cat([torch.zeros(99, dtype=F64), double([20.0])])
    weights = truncate_weights(log_weight)
    w = log_weight.exp()
    clipped = w.clamp(max=float(w.mean()) * 100**0.5)  # Ionides: τ = √n times the mean
    assert_close(weights, clipped / clipped.sum())


def test_few_draws_leave_no_singular_component():
    target = white(6)
    q = fit_mixture(target, None, single([3.0] * 6, 0.2), 4, 5, 12, generator())
    assert torch.isfinite(q.log_prob(torch.zeros(1, 6, dtype=F64))).all()


def test_zero_density_everywhere_is_refused():
    target = TwoModes()
    target.log_prior = lambda theta: theta.new_full((len(theta),), -torch.inf)
    message = r"50 draws .*; raise inference\.pilot"
    with pytest.raises(NumericalError, match=message):
        fit_mixture(target, None, single([0.0]), 2, 1, 50, generator())
