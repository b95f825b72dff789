"""One-shot games: maximin strategies of matrices; all equilibria of a small bimatrix game, and the
optimal commitment of the leader."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.errors import NumericalError
from components.games.equilibria.bimatrix import TIE
from components.maths.spacing import row_numbers

ZERO = 1e-11  # for a tableau with initial entries between 1 and 2

MAX_STEPS = 1000  # maximum number of steps per row and column; usually one or two


def safest(payoff: Tensor) -> Tensor:
    """Return an x [N, A] that attains max_x min_b Σ_a x_a r(a, b); payoff [N, A, B].

    With r scaled to [1, 2], the linear programme max Σ_b w_b, Σ_b r(a, b) w_b ≤ 1, w ≥ 0 begins
    with the slack variables as its basis, and x are its multipliers, normalised to sum 1. Bland's
    rule for the pivots prevents cycles.

    Raises NumericalError if rounding prevents termination.

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
    for _ in range(MAX_STEPS * (A + B)):
        better = tableau[:, A, :-1] < -ZERO
        unsolved = better.any(1).nonzero().squeeze(1)
        if not len(unsolved):
            duals = tableau[:, A, B:-1].clamp_min(0)
            return duals / duals.sum(1, keepdim=True)
        now = tableau[unsolved]
        games = row_numbers(unsolved)
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
    raise NumericalError(
        "a matrix game was not solved", "check for rewards of very different sizes"
    )


class Maximin(NamedTuple):
    """Maximin value of the row player, with a strategy that attains it."""

    value: Tensor  # [...]
    strategy: Tensor  # [..., A]


def maximin(payoff: Tensor) -> Maximin:
    """Compute max_x min_b Σ_a x_a r(a, b) and an x that attains it; payoff [..., A, B].

    If pure actions attain it, a saddle point, x is uniform over them.  Other 2 × 2 games
    have the closed form x_1 = (r_22 − r_21)/(r_11 − r_12 − r_21 + r_22); larger ones use
    the simplex method, all in parallel.

    Source: von Neumann (1928); Shapley (1953) for its use.
    """
    worst = payoff.amin(-1)  # of each row
    sure = worst.amax(-1)
    saddle = sure >= payoff.amax(-2).amin(-1)
    pure = (worst == sure.unsqueeze(-1)).to(payoff.dtype)
    pure = pure / pure.sum(-1, keepdim=True)
    if bool(saddle.all()):
        return Maximin(sure, pure)
    if payoff.shape[-2:] == (2, 2):
        value, mixture = _solve_two_by_two(payoff)
        return Maximin(
            torch.where(saddle, sure, value), torch.where(saddle.unsqueeze(-1), pure, mixture)
        )
    mixed = ~saddle.flatten()
    games = payoff.reshape(-1, *payoff.shape[-2:])[mixed].double()
    strategies = safest(games)
    least = (strategies.unsqueeze(-2) @ games).squeeze(-2).amin(-1)
    value = sure.flatten().clone()
    strategy = pure.view(-1, pure.shape[-1]).clone()
    value[mixed], strategy[mixed] = least.to(payoff.dtype), strategies.to(payoff.dtype)
    return Maximin(value.view_as(sure), strategy.view_as(pure))


def _solve_two_by_two(payoff: Tensor) -> Maximin:
    """Compute the maximin of 2 × 2 games without a saddle point."""
    (r11, r12), (r21, r22) = (row.unbind(-1) for row in payoff.unbind(-2))
    spread = r11 - r12 - r21 + r22
    spread = torch.where(spread == 0, 1.0, spread)
    x = (r22 - r21) / spread
    value = (r11 * r22 - r12 * r21) / spread
    return Maximin(value, torch.stack([x, 1 - x], -1))


class Equilibrium(NamedTuple):
    """Pair of strategies from which neither player gains by deviating unilaterally."""

    x: np.ndarray  # the agent's [A]
    y: np.ndarray  # the opponent's [B]

    @property
    def pure(self) -> bool:
        return bool(self.x.max() == 1 and self.y.max() == 1)


def equilibria(r_a: np.ndarray, r_b: np.ndarray) -> list[Equilibrium]:
    """Return all Nash equilibria of a non-degenerate bimatrix game [A, B], pure ones first.

    They are found by enumeration of pairs of supports of equal size.  A degenerate game may have
    infinitely many; then only those with such supports are returned.
    """
    solutions: list[Equilibrium] = []
    A, B = r_a.shape
    for size in range(1, min(A, B) + 1):
        for rows in itertools.combinations(range(A), size):
            for columns in itertools.combinations(range(B), size):
                y = _indifference_mixture(r_a[np.ix_(rows, columns)], columns, B)
                x = _indifference_mixture(r_b[np.ix_(rows, columns)].T, rows, A)
                if (
                    x is not None
                    and y is not None
                    and gain(r_a, r_b, x, y) <= TIE * max(1.0, np.abs([r_a, r_b]).max())
                ):
                    solutions.append(Equilibrium(x, y))
    return solutions


def best_commitment(r_a: np.ndarray, r_b: np.ndarray) -> Equilibrium:
    """Strong Stackelberg equilibrium of a bimatrix game [A, B]: the row player commits first.

        max_x Σ_a x_a r_A(a, b)  s.t.  Σ_a x_a (r_B(a, b′) − r_B(a, b)) ≤ 0 for all b′

    over distributions x: one linear programme per reply b, and the best solution for the row player
    is returned, so that a follower with several best replies chooses in favour of the leader.  x is
    mixed, y the pure reply.  The value is at least the leader's payoff in any Nash equilibrium, and
    equals the value of the game in zero-sum games.

    Source: Conitzer and Sandholm (2006), section 3; von Stengel and Zamir (2010).
    """
    from scipy.optimize import linprog  # slow to import

    A, B = r_a.shape
    solved = [
        linprog(-r_a[:, b], (r_b - r_b[:, [b]]).T, np.zeros(B), np.ones((1, A)), [1.0])
        for b in range(B)
    ]
    b = min(range(B), key=lambda b: round(solved[b].fun, 9) if solved[b].success else np.inf)
    return Equilibrium(solved[b].x, np.eye(B)[b])


def _indifference_mixture(
    payoff: np.ndarray, support: tuple[int, ...], n: int
) -> np.ndarray | None:
    """Return the mixture of the columns of a square payoff with equal values of all rows, [n], or
    None."""
    size = len(support)
    if size == 1:
        return np.eye(n)[support[0]]
    system = np.block([[payoff, -np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    if abs(np.linalg.det(system)) < 1e-12:
        return None
    mixture = np.linalg.solve(system, np.r_[np.zeros(size), 1.0])[:size]
    if (mixture <= 0).any():
        return None
    strategy = np.zeros(n)
    strategy[list(support)] = mixture / mixture.sum()  # exactly 1 if pure
    return strategy


def gain(r_a: np.ndarray, r_b: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest gain of either player from a unilateral deviation from (x, y)."""
    payoffs_a = r_a @ y
    payoffs_b = x @ r_b
    return float(max(payoffs_a.max() - x @ payoffs_a, payoffs_b.max() - payoffs_b @ y))


def worst_case(
    reward: Tensor, onward: Tensor, ends: Tensor | None, policy: Tensor | None, moves: int
) -> Tensor:
    """Compute the worst-case return V [..., S] of the row player from each state over ``moves``
    moves.

    V_h(s) = min_b Σ_a p(a|s) (r(s, a, b) + (1 − end(s′)) V_{h−1}(s′)), V_0 = 0, under a
    policy [..., S, A]; without a policy the best guarantee,
    V_h(s) = max_p min_b of the same expression (Shapley 1953).  Rewards and next states s′
    are [S, A, B]; all other players act as one adversary.
    """
    goes_on = reward.new_ones(len(reward)) if ends is None else (~ends).to(reward)
    lead = () if policy is None else policy.shape[:-2]
    value = reward.new_zeros(*lead, len(reward))
    for _ in range(moves):
        worth = reward + (goes_on * value)[..., onward]  # [..., S, A, B]
        value = (
            maximin(worth).value
            if policy is None
            else torch.einsum("...sa,...sab->...sb", policy, worth).amin(-1)
        )
    return value
