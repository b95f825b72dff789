"""Selection of an extreme equilibrium in each of many bimatrix games."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb
from typing import Literal, NamedTuple

import torch
from torch import Tensor


@cache
def _choices(A: int, B: int, size: int) -> tuple[Tensor, Tensor]:
    """All subsets of ``size`` of A rows and of B columns, [n, size] each."""
    pairs = [
        (rows, columns)
        for rows in combinations(range(A), size)
        for columns in combinations(range(B), size)
    ]
    rows, columns = zip(*pairs, strict=True)
    return torch.tensor(rows), torch.tensor(columns)


def sizes(A: int, B: int) -> list[int]:
    """Support size of each mixture, the A pure mixtures first."""
    mixed = (size for size in range(2, min(A, B) + 1) for _ in range(comb(A, size) * comb(B, size)))
    return [1] * A + list(mixed)


def mixtures(payoff: Tensor) -> Tensor:
    """Mixtures x of k rows with equal values of k columns to the opponent.

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
        # [N, n, k, k], one row per column of the opponent
        part = payoff[:, rows[:, :, None], columns[:, None, :]].mT
        system = torch.cat(
            [part[..., 1:, :] - part[..., :1, :], torch.ones_like(part[..., :1, :])], -2
        )
        unit = torch.zeros_like(part[..., 0])
        unit[..., -1] = 1
        x, singular = torch.linalg.solve_ex(system, unit)
        x = x.clamp_min(0).masked_fill((singular != 0).unsqueeze(-1), torch.nan)
        zeros = payoff.new_zeros(N, len(rows), A)
        blocks.append(zeros.scatter(2, rows.expand(N, -1, -1), x / x.sum(-1, keepdim=True)))
    return torch.cat(blocks, 1)


Selection = Literal["first", "best", "welfare"]

# tolerated gain of a player at an equilibrium, as a share of the largest payoff
TIE = 1e-9

AT_ONCE = 4_000_000  # pairs of mixtures per batch


class BimatrixEquilibrium(NamedTuple):
    """An equilibrium of each game."""

    x: Tensor  # the agent's [N, A]
    y: Tensor  # the opponent's [N, B]


@cache
def _order_by_support_size(A: int, B: int) -> Tensor:
    """Indices of pairs of mixtures, the pairs with the smallest supports first."""
    sizes_a = torch.tensor(sizes(A, B))
    sizes_b = torch.tensor(sizes(B, A))
    return torch.argsort((sizes_a[:, None] + sizes_b[None, :]).flatten(), stable=True)


def pairs(A: int, B: int) -> int:
    """Number of pairs of mixtures in a game of A × B actions."""
    return len(sizes(A, B)) * len(sizes(B, A))


def equilibrium(r_a: Tensor, r_b: Tensor, selection: Selection) -> BimatrixEquilibrium:
    """An equilibrium of each bimatrix game, r_a and r_b [N, A, B].

    Every extreme equilibrium is a pair (x, y) of ``mixtures`` of r_b and of r_a from which neither
    player gains by deviating unilaterally, in degenerate games too; the supports of x and y may
    differ in size. ``selection`` is ``first`` (smaller supports before larger ones, then earlier
    actions of the agent before later ones), ``best`` (highest payoff of the agent, xᵀ r_a y) or
    ``welfare`` (highest xᵀ (r_a + r_b) y); ties go to the first. If rounding excludes all pairs,
    the pair with the smallest gain is returned.

    Source: Kuhn (1961); Mangasarian (1964).
    """
    parts = max(1, AT_ONCE // pairs(*r_a.shape[1:]))
    each = [
        _equilibrium(a, b, selection)
        for a, b in zip(r_a.split(parts), r_b.split(parts), strict=True)
    ]
    return BimatrixEquilibrium(
        torch.cat([solution.x for solution in each]), torch.cat([solution.y for solution in each])
    )


def _equilibrium(r_a: Tensor, r_b: Tensor, selection: Selection) -> BimatrixEquilibrium:
    dtype, (N, A, B) = r_a.dtype, r_a.shape
    r_a = r_a.double()
    r_b = r_b.double()
    x = mixtures(r_b)
    y = mixtures(r_a.mT)  # [N, K, A], [N, L, B]
    payoffs_a = r_a @ y.mT
    payoffs_b = x @ r_b  # value of each action [N, A, L], [N, K, B]
    worth_a = x @ payoffs_a
    worth_b = payoffs_b @ y.mT  # [N, K, L]
    gain = torch.maximum(
        payoffs_a.amax(1).unsqueeze(1) - worth_a, payoffs_b.amax(2).unsqueeze(2) - worth_b
    )
    gain = gain.flatten(1).nan_to_num(torch.inf)
    tolerance = TIE * torch.maximum(r_a.abs().amax((1, 2)), r_b.abs().amax((1, 2))).unsqueeze(1)
    is_valid = gain <= torch.maximum(tolerance, gain.amin(1, keepdim=True))
    if selection != "first":
        criterion = (worth_a if selection == "best" else worth_a + worth_b).flatten(1)
        criterion = torch.where(is_valid, criterion, -torch.inf)
        is_valid &= criterion >= criterion.amax(1, keepdim=True) - tolerance
    order = _order_by_support_size(A, B).to(r_a.device)
    pair = order[is_valid[:, order].long().argmax(1)]
    games = torch.arange(N, device=r_a.device)
    L = y.shape[1]
    return BimatrixEquilibrium(x[games, pair // L].to(dtype), y[games, pair % L].to(dtype))
