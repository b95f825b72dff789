"""Stocks against their recursion, and the compiled loops against tensors."""

from __future__ import annotations

import pytest
import torch

from components.maths.compiled import loops
from components.series.fast import stocks as compiled
from components.series.maths import stocks

F64 = torch.float64


def flows(n, k=2):
    return torch.rand(n, k, generator=torch.Generator().manual_seed(n), dtype=F64)


def tensors(monkeypatch):
    monkeypatch.setattr(loops, "is_on_cpu", lambda x: False)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 64])
def test_a_stock_fades_and_grows_as_printed(n, monkeypatch):
    """A_t = (1 − δ) A_{t−1} + u_{t−1}, from nothing: eq. (1.4) without noise."""
    u, kept = flows(n), torch.tensor([[0.3, 0.9], [0.0, 1.0]], dtype=F64)
    tensors(monkeypatch)
    found = stocks.accumulate_stock(u, kept)
    A = torch.zeros(2, 2, dtype=F64)
    for t in range(n):
        assert torch.allclose(found[:, t], A, rtol=1e-12, atol=1e-13)
        A = kept * A + u[t]
    assert torch.allclose(compiled.accumulate_stock(u, kept), found, rtol=1e-12, atol=1e-13)
