"""Compiled draws of a spike-and-slab regression against those of the tensors, bit by bit."""

from __future__ import annotations

import math

import pytest
import torch

from components.maths.compiled import loops
from components.series.conditionals import spike_slab
from components.series.conditionals.spike_slab import SpikeSlab
from components.series.fast import spike_slab as compiled

pytestmark = pytest.mark.skipif(not loops.available(), reason="numba is not installed")


@pytest.mark.parametrize("upper", [math.inf, 1.3, 0.9])
@pytest.mark.parametrize("p", [0, 1, 6])
def test_the_same_bits(p, upper):
    """Without columns, with one and several, π of 0 and 1 among them, and where a limit refuses
    scans and redraws σ."""
    C, n, g = 30, 20, torch.Generator().manual_seed(p)
    X = torch.randn(n, p, generator=g, dtype=torch.float64)
    y = X.sum(1) / 3 + torch.randn(C, n, generator=g, dtype=torch.float64)
    A, b, c = (X.T @ X).expand(C, p, p), y @ X, y.square().sum(1)
    pi = torch.tensor([0.5, 1.0, 0.0, 0.2, 0.9, 0.5], dtype=torch.float64)[:p]
    prior = SpikeSlab(
        pi, 0.05 * (X.T @ X) / n + 0.05 * torch.eye(p, dtype=torch.float64), 5.0, 3.0, upper
    )
    gamma = pi.expand(C, p) > 0.4
    for _ in range(12):
        numbers = spike_slab.numbers(prior, n, C, g)
        one, two = (
            draw(prior, A, b, c, n, gamma, numbers) for draw in (spike_slab.draw, compiled.draw)
        )
        assert all(torch.equal(x, z) for x, z in zip(one, two, strict=True))
        gamma = one[0]
