"""Mixtures that make the other player indifferent: among them lie all extreme solutions of a matrix
game."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import torch
from torch import Tensor


@cache
def _choices(A: int, B: int, size: int) -> tuple[Tensor, Tensor]:
    """Every choice of so many of A rows and of B columns, [n, size] each."""
    pairs = [
        (rows, columns)
        for rows in combinations(range(A), size)
        for columns in combinations(range(B), size)
    ]
    rows, columns = zip(*pairs, strict=True)
    return torch.tensor(rows), torch.tensor(columns)


def sizes(A: int, B: int) -> list[int]:
    """Support size of each mixture, the A pure ones first."""
    mixed = (size for size in range(2, min(A, B) + 1) for _ in range(comb(A, size) * comb(B, size)))
    return [1] * A + list(mixed)


def mixtures(payoff: Tensor) -> Tensor:
    """Mixtures x of k rows that make k columns equally valuable to the opponent.

    There is one for every choice of k rows and k columns:

        Σ_i x_i r(i, j) = v for the columns j chosen, Σ_i x_i = 1,
        x_i = 0 for rows not chosen;   payoff [N, A, B] -> [N, K, A].

    The A pure mixtures come first. Negative entries are set to 0 and the rest is rescaled:
    the result is still a mixture, and its value remains to be evaluated. It is NaN if the
    equations have no solution. The result includes all vertices of {(x, v): xᵀr ≥ v} and of
    {(x, v): xᵀr ≤ v}, x a distribution.

    Source: Shapley and Snow (1950).
    """
    N, A, B = payoff.shape
    blocks = [torch.eye(A, dtype=payoff.dtype, device=payoff.device).expand(N, A, A)]
    for size in range(2, min(A, B) + 1):
        rows, columns = (choice.to(payoff.device) for choice in _choices(A, B, size))
        # [N, n, k, k], a row for each of his columns
        part = payoff[:, rows[:, :, None], columns[:, None, :]].mT
        system = torch.cat(
            [part[..., 1:, :] - part[..., :1, :], torch.ones_like(part[..., :1, :])], -2
        )
        one = torch.zeros_like(part[..., 0])
        one[..., -1] = 1
        x, singular = torch.linalg.solve_ex(system, one)
        x = x.clamp_min(0).masked_fill((singular != 0).unsqueeze(-1), torch.nan)
        zeros = payoff.new_zeros(N, len(rows), A)
        blocks.append(zeros.scatter(2, rows.expand(N, -1, -1), x / x.sum(-1, keepdim=True)))
    return torch.cat(blocks, 1)
