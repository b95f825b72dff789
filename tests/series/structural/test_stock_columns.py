"""Stocks compared with their recursion, and the compiled loops with tensors."""

import pytest
import torch
from support.runs.configured import F64, double, draw_uniform

from components.maths.compiled import loops
from components.series.structural import stock_columns as stocks
from components.series.structural.compiled import stocks as compiled


def flows(n, k=2):
    return draw_uniform(n, k, seed=n)


def tensors(monkeypatch):
    monkeypatch.setattr(loops, "is_on_cpu", lambda x: False)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 64])
def test_stock_decays_and_grows_as_printed(n, monkeypatch):
    """A_t = (1 − δ) A_{t−1} + u_{t−1}, starting at zero: eq. (1.4) without noise."""
    u = flows(n)
    kept = double([[0.3, 0.9], [0.0, 1.0]])
    tensors(monkeypatch)
    none = torch.zeros(2, dtype=F64)
    stock = stocks.accumulate_stock(u, kept, none)
    A = torch.zeros(2, 2, dtype=F64)
    for t in range(n):
        assert torch.allclose(stock[:, t], A, rtol=1e-12, atol=1e-13)
        A = kept * A + u[t]
    assert torch.allclose(compiled.accumulate_stock(u, kept, none), stock, rtol=1e-12, atol=1e-13)


def test_stock_with_a_limit_grows_like_vidale_and_wolfe(monkeypatch):
    """A_{t+1} = A_t + r u_t (1 − A_t/M) − δ A_t with A = q s, r = q, κ = r/M."""
    u = flows(40)
    delta = 0.3
    q = double([5.0, 2.0])
    limits = double([0.4, 0.0])
    M = q / limits
    kept = torch.full((1, 2), 1 - delta, dtype=F64)
    fast = stocks.accumulate_stock(u, kept, limits)
    tensors(monkeypatch)
    A = torch.zeros(2, dtype=F64)
    for t in range(40):
        assert torch.allclose(q * fast[0, t], A, rtol=1e-12)
        A = A + q * u[t] * (1 - A / M) - delta * A
    slow = stocks.accumulate_stock(u, kept.requires_grad_(), limits)
    assert torch.allclose(slow, fast, rtol=1e-12)
    (slope,) = torch.autograd.grad(slow.sum(), kept)
    step = stocks.accumulate_stock(u, kept.detach() + 1e-6, limits) - slow.detach()
    assert slope.sum() == pytest.approx(float(step.sum()) / 1e-6, rel=1e-4)
    assert fast[0, :, 0].max() < 1 / 0.4
