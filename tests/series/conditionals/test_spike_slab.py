"""Spike and slab against the enumeration of all models, whose marginal likelihoods are written out
with determinants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import special

from components.series.conditionals import spike_slab
from components.series.conditionals.spike_slab import SpikeSlab

DF, SQUARES, N = 5.0, 4.0, 25


def data(p, seed=0, n=N):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, p, generator=g, dtype=torch.float64)
    X[:, 1:] += 0.7 * X[:, :1]
    weights = 0.5 + torch.rand(n, generator=g, dtype=torch.float64)
    beta = torch.zeros(p, dtype=torch.float64)
    beta[:2] = torch.tensor([0.5, -0.6], dtype=torch.float64)
    y = X @ beta + torch.randn(n, generator=g, dtype=torch.float64)
    wX = weights[:, None] * X
    return X.T @ wX, wX.T @ y, (weights * y * y).sum()


def prior(p, pi=None, upper=math.inf):
    A = data(p, seed=5)[0] / N
    omega = 0.3 * (0.5 * A + 0.5 * A.diagonal().diag())
    pi = [0.2 + 0.6 * i / p for i in range(p)] if pi is None else pi
    return SpikeSlab(torch.tensor(pi, dtype=torch.float64), omega, DF, SQUARES, upper)


def log_marginal(model, prior, A, b, c):
    """log p(y | γ) + log p(γ) up to a constant, given σ ≤ upper."""
    on = [i for i, inside in enumerate(model) if inside]
    pi = prior.inclusion.numpy()
    log_prior = sum(math.log(q if inside else 1 - q) for q, inside in zip(pi, model, strict=True))
    omega, lam = (M.numpy()[np.ix_(on, on)] for M in (prior.precision, A + prior.precision))
    quad = b.numpy()[on] @ np.linalg.solve(lam, b.numpy()[on]) if on else 0.0
    S, a = prior.squares + float(c) - quad, (prior.df + N) / 2
    tail = math.log(special.gammaincc(a, S / 2 / prior.upper**2))
    return (
        log_prior
        + 0.5 * (np.linalg.slogdet(omega)[1] - np.linalg.slogdet(lam)[1])
        - a * math.log(S)
        + tail
    )


def enumerated(prior, A, b, c):
    """Probabilities of all models, and of each the moments of β and σ²."""
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
    means, seconds, variances = [], [], []
    for model in models:
        on = [i for i, inside in enumerate(model) if inside]
        V = np.linalg.inv((A + prior.precision).numpy()[np.ix_(on, on)])
        beta = np.zeros(len(b))
        beta[on] = V @ b.numpy()[on]
        S, a = prior.squares + float(c) - b.numpy()[on] @ beta[on], (prior.df + N) / 2
        cut = S / 2 / prior.upper**2
        sigma2 = S / 2 / (a - 1) * special.gammaincc(a - 1, cut) / special.gammaincc(a, cut)
        second = beta**2
        second[on] += sigma2 * V.diagonal()
        means.append(beta), seconds.append(second), variances.append(sigma2)
    return models, weights, np.array(means), np.array(seconds), np.array(variances)


def test_odds_of_every_flip_are_those_of_the_enumerated_models():
    p = 10
    known, (A, b, c) = prior(p), data(p)
    logit = known.inclusion.logit()
    rows = [m for m in itertools.product([False, True], repeat=p) if sum(m) % 3 == 1][::7]
    C, worst = len(rows), 0.0
    for k in range(p):
        M = torch.cat(
            [
                torch.cat([A + known.precision, b[:, None]], 1),
                torch.cat([b, c[None] + SQUARES])[None],
            ]
        )
        M, E = M.expand(C, -1, -1), known.precision.expand(C, -1, -1)
        gamma, nowhere = torch.tensor(rows), torch.zeros(C, dtype=torch.bool)
        for j in range(p):
            at = torch.full((C,), j)
            M, E = (
                spike_slab.swept(M, at, nowhere, gamma[:, j]),
                spike_slab.swept(E, at, nowhere, gamma[:, j]),
            )
        found = spike_slab.log_odds(M, E, torch.full((C,), k), gamma[:, k], logit, known.shape(N))
        for row, odds in zip(rows, found.tolist(), strict=True):
            on, off = ((*row[:k], inside, *row[k + 1 :]) for inside in (True, False))
            exact = log_marginal(on, known, A, b, c) - log_marginal(off, known, A, b, c)
            worst = max(worst, abs(odds - exact) / max(1, abs(exact)))
    assert worst < 1e-9


def test_a_sweep_undone_is_none():
    A = data(5)[0][None]
    k, yes, no = (
        torch.tensor([3]),
        torch.ones(1, dtype=torch.bool),
        torch.zeros(1, dtype=torch.bool),
    )
    inside = spike_slab.swept(A, k, no, yes)
    assert torch.allclose(spike_slab.swept(inside, k, yes, yes), A, rtol=0, atol=1e-12)
    assert torch.equal(spike_slab.swept(A, k, no, no), A)


def chains(known, A, b, c, C, scans, seed=1, burn_in=20):
    p = len(b)
    generator = torch.Generator().manual_seed(seed)
    gamma = known.inclusion.expand(C, p) > 0.5
    A, b, c = A.expand(C, p, p), b.expand(C, p), c.expand(C)
    kept = []
    for t in range(scans):
        gamma, sigma, beta = spike_slab.draw(
            known, A, b, c, N, gamma, spike_slab.numbers(known, N, C, generator)
        )
        if t >= burn_in:
            kept.append((gamma, sigma, beta))
    return [torch.stack(rows, 1) for rows in zip(*kept, strict=True)]  # [C, scans, …]


def z_scores(values, exact):
    """Of means over independent chains [C, scans, …]."""
    by_chain = values.double().mean(1)
    se = by_chain.std(0) / math.sqrt(len(by_chain))
    return ((by_chain.mean(0) - torch.as_tensor(exact)) / se.clamp_min(1e-12)).abs().max()


@pytest.mark.parametrize("upper", [math.inf, 1.05])
def test_chains_have_the_moments_of_the_enumerated_mixture(upper):
    """Without a limit and with one that cuts much of σ away."""
    known, (A, b, c) = prior(4, upper=upper), data(4)
    models, weights, means, seconds, variances = enumerated(known, A, b, c)
    gamma, sigma, beta = chains(known, A, b, c, 400, 50, burn_in=30)
    inside = np.array(models, dtype=float)
    assert float(sigma.max()) <= upper
    assert z_scores(gamma, weights @ inside) < 4
    pairs = (gamma.unsqueeze(-1) & gamma.unsqueeze(-2)).flatten(2)
    assert (
        z_scores(
            pairs, (weights @ np.einsum("mi,mj->mij", inside, inside).reshape(len(models), -1))
        )
        < 4
    )
    assert z_scores(beta, weights @ means) < 4
    assert z_scores(beta.square(), weights @ seconds) < 4
    assert z_scores(sigma.square(), weights @ variances) < 4
    assert torch.equal(beta != 0, gamma)


def test_certain_coefficients_are_in_and_impossible_ones_out():
    known, (A, b, c) = prior(4, [1.0, 0.0, 0.3, 1.0]), data(4)
    gamma, _, beta = chains(known, A, b, c, 400, 40)
    assert bool(gamma[..., 0].all())
    assert bool(gamma[..., 3].all())
    assert not bool(gamma[..., 1].any())
    models, weights, means, _, _ = enumerated(known, A, b, c)
    weights = weights * np.array([0.3 if m[2] else 0.7 for m in models])
    assert z_scores(beta, weights / weights.sum() @ means) < 4


def test_without_columns_the_variance_is_drawn_alone():
    known = SpikeSlab(
        torch.ones(0, dtype=torch.float64),
        torch.ones(0, 0, dtype=torch.float64),
        DF,
        SQUARES,
        math.inf,
    )
    nothing = torch.zeros(0, dtype=torch.float64)
    _, sigma, beta = chains(
        known, nothing.diag(), nothing, torch.tensor(10.0, dtype=torch.float64), 400, 40
    )
    assert beta.shape == (400, 20, 0)
    assert z_scores(sigma.square(), (SQUARES + 10) / 2 / ((DF + N) / 2 - 1)) < 4
