"""Stocks against their recursion, and the compiled loops against tensors."""

from __future__ import annotations

import pytest
import torch

from components.maths.compiled import loops
from components.maths.compiled import stocks as compiled
from components.maths.conditionals import spike_slab
from components.maths.conditionals.spike_slab import SpikeSlab
from components.maths.series import stocks

F64 = torch.float64


def flows(n, k=2):
    return torch.rand(n, k, generator=torch.Generator().manual_seed(n), dtype=F64)


def tensors(monkeypatch):
    monkeypatch.setattr(loops, "serve", lambda x: False)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 64])
def test_a_stock_fades_and_grows_as_printed(n, monkeypatch):
    """A_t = (1 − δ) A_{t−1} + u_{t−1}, from nothing: eq. (1.4) without noise."""
    u, kept = flows(n), torch.tensor([[0.3, 0.9], [0.0, 1.0]], dtype=F64)
    tensors(monkeypatch)
    found = stocks.grown(u, kept)
    A = torch.zeros(2, 2, dtype=F64)
    for t in range(n):
        assert torch.allclose(found[:, t], A, rtol=1e-12, atol=1e-13)
        A = kept * A + u[t]
    if loops.available():
        assert torch.equal(compiled.grown(u, kept), found)


@pytest.mark.skipif(not loops.available(), reason="numba is not installed")
def test_what_observations_say_of_the_rate_is_the_evidence_of_their_moments(monkeypatch):
    g, C, n, p = torch.Generator().manual_seed(0), 5, 15, 4
    X, fades = torch.randn(n, p, generator=g, dtype=F64), torch.tensor([-1, 1, 1, 0])
    phi, weights = torch.rand(C, 2, generator=g, dtype=F64), torch.rand(C, n, generator=g, dtype=F64)
    left, sigma = torch.randn(C, n, generator=g, dtype=F64), 0.5 + torch.rand(C, generator=g, dtype=F64)
    gamma = torch.rand(C, p, generator=g) < 0.6
    gamma[0] = False
    omega = torch.eye(p, dtype=F64) + 0.2
    x = torch.rand(C, generator=g, dtype=F64)
    tensors(monkeypatch)
    columns = stocks.stocks(X, fades, torch.stack([phi[:, 0], x], 1))
    A = columns.mT @ (weights.unsqueeze(2) * columns)
    b = ((weights * left).unsqueeze(1) @ columns).squeeze(1)
    prior = SpikeSlab(torch.full((p,), 0.5, dtype=F64), omega, 1.0, 1.0, 1.0)
    expected = spike_slab.log_evidence(prior, A, b, gamma, sigma)
    before = stocks.stocks(X, fades, phi).mT
    found = compiled.log_evidence(before, X.T, fades == 1, x, weights, left, omega, gamma, sigma)
    assert torch.allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert float(found[0]) == 0.0
