"""Batched simplex method for matrix games that are too large for support enumeration.

All games of a batch have one shape.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.trouble import NumericalError

ZERO = 1e-11  # of a tableau whose entries begin between 1 and 2
PATIENCE = 1000  # steps for each row and column, of which one or two are usual


def safest(payoff: Tensor) -> Tensor:
    """An x [N, A] that reaches max_x min_b Σ_a x_a r(a, b); payoff [N, A, B].

    With r brought to 1 … 2, the programme max Σ_b w_b, Σ_b r(a, b) w_b ≤ 1, w ≥ 0 begins with the
    slacks as its basis, and x are its multipliers, scaled to sum to 1.  Which column enters and
    which row leaves is Bland's choice, so that it ends.

    Raises NumericalTrouble where rounding keeps it from ending.

    Source: Dantzig (1963), chapter 13; Bland (1977)."""
    N, A, B = payoff.shape
    low = payoff.amin((1, 2), keepdim=True)
    high = payoff.amax((1, 2), keepdim=True)
    scaled = 1 + (payoff - low) / torch.where(high > low, high - low, 1.0)
    ones = payoff.new_ones(N, A, 1)
    top = torch.cat(
        [scaled, torch.eye(A, dtype=payoff.dtype, device=payoff.device).expand(N, A, A), ones], 2
    )
    tableau = torch.cat([top, torch.zeros_like(top[:, :1])], 1)
    tableau[:, A, :B] = -1
    basis = torch.arange(B, B + A, device=payoff.device).repeat(N, 1)
    for _ in range(PATIENCE * (A + B)):
        better = tableau[:, A, :-1] < -ZERO
        unsolved = better.any(1).nonzero().squeeze(1)
        if not len(unsolved):
            duals = tableau[:, A, B:-1].clamp_min(0)
            return duals / duals.sum(1, keepdim=True)
        now = tableau[unsolved]
        games = torch.arange(len(unsolved), device=payoff.device)
        enters = better[unsolved].long().argmax(1)
        column = now[games, :, enters]  # [n, A + 1]
        limits = torch.where(
            column[:, :A] > ZERO, now[:, :A, -1] / column[:, :A].clamp_min(ZERO), torch.inf
        )
        tied = limits <= limits.amin(1, keepdim=True) + ZERO
        leaves = torch.where(tied, basis[unsolved], A + B).argmin(1)
        row = now[games, leaves] / column[games, leaves].unsqueeze(1)
        now = now - column.unsqueeze(2) * row.unsqueeze(1)
        now[games, leaves] = row
        tableau[unsolved] = now
        basis[unsolved, leaves] = enters
    raise NumericalError("a matrix game was not solved", "look for rewards of very different sizes")
