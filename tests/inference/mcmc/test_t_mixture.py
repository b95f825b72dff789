"""Mixtures of t distributions, term by term, and what a round of population Monte Carlo makes of
one."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.runs.configured import double, generator, normal
from support.targets.exact_targets import TwoModes
from support.targets.known_targets import F64, GaussianTarget, z_score
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.mcmc.t_mixture import (
    TMixture,
    fit_mixture,
    spread,
    truncate_weights,
    update_mixture,
)


def mixture(dof: float = 4.0, D: int = 3, P: int = 2) -> TMixture:
    g = generator(1)
    weights = torch.rand(D, generator=g, dtype=F64)
    factors = normal(g, D, P, P).tril() + 2 * torch.eye(P, dtype=F64)
    return TMixture(weights / weights.sum(), 3 * normal(g, D, P), factors, dof)


def t_density(theta, centre, sigma, nu):
    """The multivariate t written out; the Gaussian where ν is infinite."""
    P, gap = len(theta), theta - centre
    square, det = float(gap @ torch.linalg.inv(sigma) @ gap), float(torch.linalg.det(sigma))
    if math.isinf(nu):
        return math.exp(-square / 2) / math.sqrt((2 * math.pi) ** P * det)
    constant = math.gamma((nu + P) / 2) / (
        math.gamma(nu / 2) * math.sqrt((nu * math.pi) ** P * det)
    )
    return constant * (1 + square / nu) ** (-(nu + P) / 2)


@pytest.mark.parametrize("dof", [4.0, 1.5, math.inf])
def test_density_is_the_weighted_sum(dof):
    q = mixture(dof)
    for theta in 4 * normal(generator(), 5, 2):
        parts = zip(q.weights, q.centres, q.factors, strict=True)
        exact = sum(float(a) * t_density(theta, m, L @ L.T, dof) for a, m, L in parts)
        assert float(q.log_prob(theta[None])) == pytest.approx(math.log(exact))


@pytest.mark.parametrize("dof", [6.0, math.inf])
def test_draws_have_the_moments_of_the_mixture(dof):
    q = mixture(dof)
    draws = q.draw(40_000, generator())
    spread_out = 1.0 if math.isinf(dof) else dof / (dof - 2)
    mean = q.weights @ q.centres
    second = sum(
        a * (spread_out * L @ L.T + torch.outer(m, m))
        for a, m, L in zip(q.weights, q.centres, q.factors, strict=True)
    )
    products = draws[:, :, None] * draws[:, None]
    for found, exact in ((draws, mean), (products, second)):
        z = z_score(found, exact)
        assert z.abs().max() < 4


def test_a_round_is_the_literal_update():
    q, n, P, nu = mixture(), 40, 2, 4.0
    theta = q.draw(n, generator())
    weights = torch.rand(n, generator=generator(2), dtype=F64)
    weights /= weights.sum()
    anchor = double([[2.0, 0.3], [0.3, 1.0]])
    after = update_mixture(q, theta, weights, anchor)
    mean = sum(w * x for w, x in zip(weights, theta, strict=True))
    pooled = sum(w * torch.outer(x - mean, x - mean) for w, x in zip(weights, theta, strict=True))
    few = P / (P + 1 / sum(float(w) ** 2 for w in weights))
    pooled = (1 - few) * pooled + few * anchor
    for d in range(3):
        rho, u = [], []
        for x in theta:
            terms = [
                float(a) * t_density(x, m, L @ L.T, nu)
                for a, m, L in zip(q.weights, q.centres, q.factors, strict=True)
            ]
            rho.append(terms[d] / sum(terms))
            gap = x - q.centres[d]
            square = float(gap @ torch.linalg.inv(q.factors[d] @ q.factors[d].T) @ gap)
            u.append((nu + P) / (nu + square))
        alpha = sum(float(w) * r for w, r in zip(weights, rho, strict=True))
        total = sum(float(w) * r * v for w, r, v in zip(weights, rho, u, strict=True))
        centre = (
            sum(float(w) * r * v * x for w, r, v, x in zip(weights, rho, u, theta, strict=True))
            / total
        )
        own = sum(
            float(w) * r * v * torch.outer(x - centre, x - centre)
            for w, r, v, x in zip(weights, rho, u, theta, strict=True)
        )
        behind = alpha**2 / sum((float(w) * r) ** 2 for w, r in zip(weights, rho, strict=True))
        share = P / (P + behind)
        assert float(after.weights[d]) == pytest.approx(alpha)
        assert_close(after.centres[d], centre)
        sigma = (1 - share) * own / alpha + share * pooled
        assert_close(after.factors[d] @ after.factors[d].T, sigma)


def test_rounds_do_not_raise_the_divergence_from_the_target():
    """E_π log q, of which a round of exact weights makes the most: here on many draws of a target
    with two modes."""
    target, g = TwoModes(), generator()
    q = spread(
        TMixture(
            torch.ones(1, dtype=F64),
            torch.zeros(1, 1, dtype=F64),
            torch.ones(1, 1, 1, dtype=F64),
            5.0,
        ),
        4,
        g,
    )
    fits = []
    for _ in range(6):
        theta = q.draw(20_000, g)
        log_weight = target.log_prior(theta) - q.log_prob(theta)
        weights = log_weight.softmax(0)
        fits.append(float(weights @ q.log_prob(theta)))
        q = update_mixture(q, theta, weights, torch.eye(1, dtype=F64))
    assert all(later > earlier - 0.01 for earlier, later in itertools.pairwise(fits))
    assert fits[-1] > fits[0] + 0.1


def test_both_modes_are_found_from_one():
    """Components scatter around one mode; rounds take them to where the target is."""
    target = TwoModes()
    theta, best = torch.linspace(-6, 6, 24_001, dtype=F64)[:, None], TwoModes()
    density = best.log_prior(theta).exp()
    below = float(density[theta[:, 0] < 0].sum() / density.sum())
    start = TMixture(
        torch.ones(1, dtype=F64),
        torch.full((1, 1), 2.0, dtype=F64),
        torch.ones(1, 1, 1, dtype=F64),
        5.0,
    )
    q = fit_mixture(target, None, start, 6, 8, 2000, generator())
    assert float((q.draw(20_000, generator())[:, 0] < 0).double().mean()) == pytest.approx(
        below, abs=0.05
    )


def test_a_great_weight_is_truncated():
    log_weight = torch.cat([torch.zeros(99, dtype=F64), double([20.0])])
    weights = truncate_weights(log_weight)
    w = log_weight.exp()
    clipped = w.clamp(max=float(w.mean()) * 100**0.5)  # Ionides: τ = √n times the mean
    assert_close(weights, clipped / clipped.sum())


def test_few_draws_leave_no_singular_component():
    target = GaussianTarget(torch.zeros(6, dtype=F64), torch.eye(6, dtype=F64))
    start = TMixture(
        torch.ones(1, dtype=F64),
        torch.full((1, 6), 3.0, dtype=F64),
        0.2 * torch.eye(6, dtype=F64)[None],
        5.0,
    )
    q = fit_mixture(target, None, start, 4, 5, 12, generator())
    assert torch.isfinite(q.log_prob(torch.zeros(1, 6, dtype=F64))).all()


def test_no_density_anywhere_is_named():
    target = TwoModes()
    target.log_prior = lambda theta: theta.new_full((len(theta),), -torch.inf)
    start = TMixture(
        torch.ones(1, dtype=F64), torch.zeros(1, 1, dtype=F64), torch.ones(1, 1, 1, dtype=F64), 5.0
    )
    with pytest.raises(
        NumericalError,
        match=r"not finite at any of 50 draws of the proposal; raise inference\.pilot",
    ):
        fit_mixture(target, None, start, 2, 1, 50, generator())
