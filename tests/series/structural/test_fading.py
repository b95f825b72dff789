"""How fast goodwill fades: the evidence written out, draws against a grid, compiled ones against
those of tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from components.maths.compiled import loops
from components.series.conditionals.spike_slab import SpikeSlab
from components.series.structural.fading import FadingRegression

F64 = torch.float64
N, P = 30, 4


def case(C, alike=False, seed=0):
    """Columns of which two are stocks, and what is to be told by them; ``alike``: the same in every
    chain."""
    g = torch.Generator().manual_seed(seed)
    X, fades = torch.rand(N, P, generator=g, dtype=F64), torch.tensor([-1, 0, 0, 1])
    phi, weights = (
        torch.rand(C, 2, generator=g, dtype=F64),
        torch.rand(C, N, generator=g, dtype=F64),
    )
    left, sigma = (
        torch.randn(C, N, generator=g, dtype=F64),
        0.5 + torch.rand(C, generator=g, dtype=F64),
    )
    gamma = torch.rand(C, P, generator=g) < 0.6
    gamma[0] = torch.tensor([True, True, False, True])
    if alike:
        phi, weights, left, gamma, sigma = (
            x[:1].expand(C, *x.shape[1:]) for x in (phi, weights, left, gamma, sigma)
        )
    weights = weights * (torch.arange(N) != 4)
    slab = SpikeSlab(torch.full((P,), 0.5, dtype=F64), torch.eye(P, dtype=F64) + 0.2, 1.0, 1.0, 1.0)
    return FadingRegression(
        X, fades, 0, phi, left * (torch.arange(N) != 4), weights, slab, gamma, sigma
    )


def literally(fading, c, x):
    """log N(e | 0, σ²(Λ⁻¹ + X Ω⁻¹ Xᵀ)) of times that are seen."""
    phi = [x, float(fading.phi[c, 1])]
    X = fading.X.clone()
    for j, q in enumerate(fading.fades.tolist()):
        if q >= 0:
            s = 0.0
            for t in range(N):
                X[t, j], s = s, phi[q] * s + float(fading.X[t, j])
    on, seen = fading.gamma[c], fading.weights[c] > 0
    X, omega = X[seen][:, on], fading.slab.precision[on][:, on]
    spread = torch.diag(1 / fading.weights[c, seen]) + X @ torch.linalg.inv(omega) @ X.T
    law = torch.distributions.MultivariateNormal(
        torch.zeros(int(seen.sum()), dtype=F64), fading.sigma[c] ** 2 * spread
    )
    return float(law.log_prob(fading.left[c, seen]))


def test_the_evidence_is_that_of_the_dense_gaussian():
    fading = case(4)
    one, two = (fading.log_density(torch.full((4,), x, dtype=F64)) for x in (0.3, 0.8))
    for c in range(4):
        assert float(two[c] - one[c]) == pytest.approx(
            literally(fading, c, 0.8) - literally(fading, c, 0.3), abs=1e-8
        )


def test_draws_have_the_law_on_a_grid(monkeypatch):
    C = 2000
    fading = case(C, alike=True)
    precision, pull = torch.full((C,), 4.0, dtype=F64), torch.full((C,), 1.0, dtype=F64)
    x, g = torch.full((C,), 0.5, dtype=F64), torch.Generator().manual_seed(0)
    for _ in range(6):
        x = fading.draw(precision, pull, x, 0.0, 1.0, g)
    grid = np.linspace(0.0005, 0.9995, 400)
    log = np.array([literally(fading, 0, float(v)) + (1 - 2 * v) * v for v in grid])
    cdf = np.exp(log - log.max()).cumsum()
    assert stats.kstest(x.numpy(), lambda v: np.interp(v, grid, cdf / cdf[-1])).pvalue > 1e-3


@pytest.mark.skipif(not loops.available(), reason="numba is not installed")
def test_compiled_draws_have_the_same_bits(monkeypatch):
    C = 40
    fading = case(C)
    precision, pull, x = (
        torch.full((C,), 2.0, dtype=F64),
        torch.zeros(C, dtype=F64),
        torch.full((C,), 0.4, dtype=F64),
    )
    quick = fading.draw(precision, pull, x, 0.0, 1.0, torch.Generator().manual_seed(3))
    monkeypatch.setattr(loops, "serve", lambda x: False)
    slow = fading.draw(precision, pull, x, 0.0, 1.0, torch.Generator().manual_seed(3))
    assert torch.equal(quick, slow)
    assert not bool((quick == x).any())
