"""Spike and slab compared with the enumeration of all models, with marginal likelihoods by
determinants."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import special
from support.runs.configured import F64, double, generator, normal, uniform

from components.maths.compiled.loops import compiled
from components.series.structural.compiled import spike_slab
from components.series.structural.compiled.spike_slab import (
    Slab,
    SlabRandomNumbers,
    draw_regression,
    slab_work,
)

DF = 5.0
SQUARES = 4.0
N = 25


@dataclass(frozen=True)
class SpikeSlab:
    """The prior of p coefficients and of the variance."""

    inclusion: torch.Tensor
    precision: torch.Tensor
    df: float
    squares: float
    upper: float

    @property
    def slab(self):
        logit = self.inclusion.log() - (-self.inclusion).log1p()
        return Slab(
            self.precision.numpy(), logit.numpy(), self.squares, (self.df + N) / 2, self.upper
        )


@compiled()
def draw_all(slab, moments, drawn, g, chains, work):
    A, b, c = moments
    gamma, sigma, beta = chains
    for i in range(len(sigma)):
        work.A[:] = A
        work.b[:] = b
        numbers = SlabRandomNumbers(drawn.u[i], drawn.z[i])
        sigma[i] = draw_regression(slab, c, numbers, g[i], gamma[i], beta[i], work)


def data(p, seed=0, n=N):
    g = generator(seed)
    X = normal(g, n, p)
    X[:, 1:] += 0.7 * X[:, :1]
    weights = 0.5 + uniform(g, n)
    beta = torch.zeros(p, dtype=F64)
    beta[:2] = double([0.5, -0.6])
    y = X @ beta + normal(g, n)
    wX = weights[:, None] * X
    return X.T @ wX, wX.T @ y, (weights * y * y).sum()


def prior(p, pi=None, upper=math.inf):
    A = data(p, seed=5)[0] / N
    omega = 0.3 * (0.5 * A + 0.5 * A.diagonal().diag())
    pi = [0.2 + 0.6 * i / p for i in range(p)] if pi is None else pi
    return SpikeSlab(double(pi), omega, DF, SQUARES, upper)


def log_marginal(model, prior, A, b, c):
    """log p(y | γ) + log p(γ) up to a constant, given σ ≤ upper."""
    on = [i for i, inside in enumerate(model) if inside]
    pi = prior.inclusion.numpy()
    log_prior = sum(math.log(q if inside else 1 - q) for q, inside in zip(pi, model, strict=True))
    omega, lam = (M.numpy()[np.ix_(on, on)] for M in (prior.precision, A + prior.precision))
    quad = b.numpy()[on] @ np.linalg.solve(lam, b.numpy()[on])
    S = prior.squares + float(c) - quad
    a = (prior.df + N) / 2
    tail = math.log(special.gammaincc(a, S / 2 / prior.upper**2))
    log_ratio = np.linalg.slogdet(omega)[1] - np.linalg.slogdet(lam)[1]
    return log_prior + 0.5 * log_ratio - a * math.log(S) + tail


def enumerate_models(prior, A, b, c):
    """Probabilities of all models, and the moments of β and σ² for each."""
    models = list(itertools.product([False, True], repeat=len(b)))
    models = [
        m
        for m in models
        if all(0 < q < 1 or m[i] == (q == 1) for i, q in enumerate(prior.inclusion.tolist()))
    ]
    free = SpikeSlab(
        prior.inclusion.clamp(0.5, 0.5), prior.precision, prior.df, prior.squares, prior.upper
    )
    fixed = bool(((prior.inclusion == 0) | (prior.inclusion == 1)).any())
    logs = np.array([log_marginal(m, free if fixed else prior, A, b, c) for m in models])
    weights = np.exp(logs - special.logsumexp(logs))
    means = []
    seconds = []
    variances = []
    for model in models:
        on = [i for i, inside in enumerate(model) if inside]
        V = np.linalg.inv((A + prior.precision).numpy()[np.ix_(on, on)])
        beta = np.zeros(len(b))
        beta[on] = V @ b.numpy()[on]
        S = prior.squares + float(c) - b.numpy()[on] @ beta[on]
        a = (prior.df + N) / 2
        cut = S / 2 / prior.upper**2
        sigma2 = S / 2 / (a - 1) * special.gammaincc(a - 1, cut) / special.gammaincc(a, cut)
        second = beta**2
        second[on] += sigma2 * V.diagonal()
        means.append(beta), seconds.append(second), variances.append(sigma2)
    return models, weights, np.array(means), np.array(seconds), np.array(variances)


def swept(M, gamma):
    """A copy of M swept by γ."""
    M = M.copy()
    for j in np.flatnonzero(gamma):
        spike_slab.pivot(M, j, False, np.empty(len(M)))
    return M


def test_flip_odds_equal_those_of_the_enumerated_models():
    p = 10
    slab_prior = prior(p)
    A, b, c = data(p)
    slab = slab_prior.slab
    whole = np.block(
        [[(A + slab_prior.precision).numpy(), b[:, None].numpy()], [b.numpy(), c.numpy() + SQUARES]]
    )
    rows = [m for m in itertools.product([False, True], repeat=p) if sum(m) % 3 == 1][::17]
    for row in rows:
        M = swept(whole, row)
        E = swept(slab.omega, row)
        for k in range(p):
            log_odds = spike_slab.log_odds(M, E, k, row[k], slab, 0.0)
            on, off = ((*row[:k], inside, *row[k + 1 :]) for inside in (True, False))
            exact = log_marginal(on, slab_prior, A, b, c) - log_marginal(off, slab_prior, A, b, c)
            assert log_odds == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_reversed_pivot_restores_the_matrix():
    A = data(5)[0].numpy()
    M = swept(A, [False, False, False, True, False])
    spike_slab.pivot(M, 3, True, np.empty(5))
    assert np.allclose(M, A, rtol=0, atol=1e-12)


def chains(slab_prior, A, b, c, C, scans, seed=1, burn_in=20):
    p = len(b)
    rng = np.random.default_rng(seed)
    slab = slab_prior.slab
    work = slab_work(p)
    gamma = np.tile(slab_prior.inclusion.numpy() > 0.5, (C, 1))
    sigma = np.empty(C)
    beta = np.empty((C, p))
    kept = []
    for t in range(scans):
        drawn = SlabRandomNumbers(rng.random((C, p + 1)), rng.standard_normal((C, p)))
        g = rng.standard_gamma(slab.shape, (C, 2))
        draw_all(slab, (A.numpy(), b.numpy(), float(c)), drawn, g, (gamma, sigma, beta), work)
        if t >= burn_in:
            kept.append([torch.from_numpy(x.copy()) for x in (gamma, sigma, beta)])
    return [torch.stack(rows, 1) for rows in zip(*kept, strict=True)]  # [C, scans, …]


def z_scores(values, exact):
    """z-scores of means over independent chains [C, scans, …]."""
    by_chain = values.double().mean(1)
    se = by_chain.std(0) / math.sqrt(len(by_chain))
    return ((by_chain.mean(0) - torch.as_tensor(exact)) / se.clamp_min(1e-12)).abs().max()


@pytest.mark.parametrize("upper", [math.inf, 1.05])
def test_chains_have_the_moments_of_the_enumerated_mixture(upper):
    """Without a limit and with one that truncates much of σ."""
    slab_prior = prior(4, upper=upper)
    A, b, c = data(4)
    models, weights, means, seconds, variances = enumerate_models(slab_prior, A, b, c)
    gamma, sigma, beta = chains(slab_prior, A, b, c, 400, 50, burn_in=30)
    inside = np.array(models, dtype=float)
    assert sigma.max() <= upper
    assert z_scores(gamma, weights @ inside) < 4
    pairs = gamma.unsqueeze(-1) & gamma.unsqueeze(-2)
    assert z_scores(pairs, np.einsum("m,mi,mj->ij", weights, inside, inside)) < 4
    assert z_scores(beta, weights @ means) < 4
    assert z_scores(beta.square(), weights @ seconds) < 4
    assert z_scores(sigma.square(), weights @ variances) < 4
    assert torch.equal(beta != 0, gamma)


def test_certain_columns_are_included_and_impossible_excluded():
    slab_prior = prior(4, [1.0, 0.0, 0.3, 1.0])
    A, b, c = data(4)
    gamma, _, beta = chains(slab_prior, A, b, c, 400, 40)
    assert gamma[..., [0, 3]].all()
    assert not gamma[..., 1].any()
    models, weights, means, _, _ = enumerate_models(slab_prior, A, b, c)
    weights = weights * np.array([0.3 if m[2] else 0.7 for m in models])
    assert z_scores(beta, weights / weights.sum() @ means) < 4


def test_variance_is_drawn_without_columns():
    nothing = torch.zeros(0, dtype=F64)
    slab_prior = SpikeSlab(nothing, nothing.diag(), DF, SQUARES, math.inf)
    _, sigma, beta = chains(slab_prior, nothing.diag(), nothing, double(10.0), 400, 40)
    assert beta.shape == (400, 20, 0)
    assert z_scores(sigma.square(), (SQUARES + 10) / 2 / ((DF + N) / 2 - 1)) < 4
