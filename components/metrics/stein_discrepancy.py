"""Kernelised Stein discrepancy between a sample and a target with a known score ∇log p.

Only the score of the target is required.
"""

from __future__ import annotations

import torch
from torch import Tensor

# inverse multiquadric k(x, y) = (c² + ‖x − y‖²)^β, as recommended, because it detects
# non-convergence
BETA = -0.5
C = 1.0
ROWS = 1000  # number of rows of the n × n matrix in memory


def stein_kernel(x: Tensor, s: Tensor, y: Tensor, t: Tensor) -> Tensor:
    """k_p(x_i, y_j) of the inverse multiquadric kernel; x, s = ∇log p(x) [n, P] and y, t = ∇log
    p(y) [m, P] -> [n, m].

    k_p(x, y) = ∇ₓ·∇ᵧ k + ⟨∇ₓk, ∇log p(y)⟩ + ⟨∇ᵧk, ∇log p(x)⟩ + k ⟨∇log p(x), ∇log p(y)⟩; with d = x
    − y, u = c² + ‖d‖²: = u^β sᵀt + 2β u^(β−1) dᵀ(t − s) − 2βP u^(β−1) − 4β(β−1) ‖d‖² u^(β−2), all
    of it from matrix products.

    Source: Gorham & Mackey (2017), section 3.1."""
    # only differences matter, and products of large numbers would lose their precision
    centre = x.mean(0)
    x = x - centre
    y = y - centre
    r2 = (x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T).clamp_min(0)  # [n, m]
    across = x @ t.T + s @ y.T - (x * s).sum(1)[:, None] - (y * t).sum(1)  # dᵀ(t − s)
    u = C**2 + r2
    k = u**BETA
    slope = 2 * BETA * k / u
    return k * (s @ t.T) + slope * (across - x.shape[1]) - 2 * (BETA - 1) * slope * r2 / u


def ksd_squared(x: Tensor, score: Tensor, weights: Tensor | None = None) -> Tensor:
    """KSD² of a sample x [n, P] with scores ∇log p(x) [n, P]; [].

    The V-statistic is Σᵢⱼ wᵢwⱼ k_p(xᵢ, xⱼ), with weights [n] of sum 1 (1/n if not given):
    it is at least 0, and about E[k_p(x, x)]/n for n exact draws.  O(n²P) time and 1,000 × n numbers
    in memory.

    Source: Gorham & Mackey (2017), section 3.1.
    """
    n = len(x)
    w = x.new_full((n,), 1 / n) if weights is None else weights
    total = x.new_zeros(())
    for rows in torch.arange(n, device=x.device).split(ROWS):
        total = total + w[rows] @ stein_kernel(x[rows], score[rows], x, score) @ w
    return total
