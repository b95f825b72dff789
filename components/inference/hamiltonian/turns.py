"""U-turn checks of trajectories from one Gram matrix of inner products.

All inner products that a check needs come from it, and one product sums them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

# Σ_k r_k of these momenta, with this velocity: no more than 0 is a turn
Check = tuple[tuple[int, ...], int]
Checks = tuple[Check, ...]

BEFORE = 2  # columns of a block before its own states


class Part(NamedTuple):
    """Consecutive states by their columns in a Gram matrix."""

    states: tuple[int, ...]  # their momenta sum to ρ
    first: int
    last: int


@dataclass(frozen=True)
class TrajectorySegment:
    """Consecutive states of A trajectories, in the order in which they were reached."""

    first: Tensor  # r and M⁻¹ r [A, 2, P]
    last: Tensor
    rho: Tensor  # Σ r [A, P]


def list_joint_checks(a: Part, b: Part) -> Checks:
    """U-turn checks of two parts, a before b: both, and each with the nearest state of the other
    (Stan's checks), each sum with the velocities at its ends."""
    both = (*a.states, *b.states)
    with_first = (*a.states, b.first)
    with_last = (a.last, *b.states)
    return (
        (both, a.first),
        (both, b.last),
        (with_first, a.first),
        (with_first, b.first),
        (with_last, a.last),
        (with_last, b.last),
    )


@cache
def list_turn_checks(n: int, before: int = 0) -> Checks:
    """U-turn checks to make when the last of n = 2^k states is reached.

    They are those of the two halves of each stretch of 2, 4, … n states that ends there.
    ``before`` columns of the Gram matrix lie before those of the states.
    """
    checks: dict[Check, None] = {}  # two states are their halves: asked once
    end = before + n
    for size in (2**k for k in range(1, n.bit_length())):
        a = end - size
        m = end - size // 2
        halves = (
            Part(tuple(range(a, m)), a, m - 1),
            Part(tuple(range(m, end)), m, end - 1),
        )
        checks |= dict.fromkeys(list_joint_checks(*halves))
    return tuple(checks)


def list_block_checks(n: int) -> Checks:
    """Checks of a trajectory, in the columns ``BEFORE``, with n states that double it.

    Column 0 has its ρ and the velocity of its first state, column 1 its last state.
    """
    states = tuple(range(BEFORE, BEFORE + n))
    return list_joint_checks(Part((0,), 0, 1), Part(states, states[0], states[-1]))


# Of momenta (ρ_a, ρ_b, first of b, last of a) with the velocities at (first of a, last of b, first
# of b, last of a).
MERGED = list_joint_checks(Part((0,), 0, 3), Part((1,), 2, 1))


def summing(n: int, checks: Checks, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix [n², checks] by which a Gram matrix [n, n] of n momenta with n velocities becomes
    the checks."""
    coefficients = [
        [[float(k in momenta and end == v) for momenta, v in checks] for end in range(n)]
        for k in range(n)
    ]
    return torch.tensor(coefficients, dtype=dtype, device=device).flatten(0, 1)


@cache
def sum_stretch(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """``summing`` of the checks of a stretch of n states."""
    return summing(n, list_turn_checks(n), dtype, device)


@cache
def sum_block(n: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, int]:
    """``summing`` of the checks of a stretch of n states, then of those with the trajectory before
    it; and how many are of the stretch."""
    own = list_turn_checks(n, BEFORE)
    return summing(BEFORE + n, own + list_block_checks(n), dtype, device), len(own)


@cache
def sum_merged(dtype: torch.dtype, device: torch.device) -> Tensor:
    """``summing`` of ``MERGED``."""
    return summing(4, MERGED, dtype, device)


def go_straight(r: Tensor, velocity: Tensor, weights: Tensor) -> Tensor:
    """True where a check holds; momenta [A, n, P], velocities [A, P, n] and ``summing`` [n²,
    checks] -> [A, checks]."""
    return torch.bmm(r, velocity).flatten(1) @ weights > 0


def is_stretch_straight(r: Tensor, velocity: Tensor) -> Tensor:
    """True if no aligned stretch that ends at the last of n = 2^k states turns.

    r [A, n, P] and M⁻¹r [A, P, n] -> [A].  A stretch with momenta summing to ρ turns if rᵀM⁻¹ρ ≤ 0
    at one of its ends.

    Source: Betancourt (2017), section A.4.2.
    """
    return go_straight(r, velocity, sum_stretch(r.shape[1], r.dtype, r.device)).all(1)


def is_block_straight(r: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """``is_stretch_straight`` of n states after ``BEFORE`` columns of a trajectory, and True if
    both together do not turn.

    r [A, 2 + n, P] and M⁻¹r [A, P, 2 + n] -> [A], [A].
    """
    weights, own = sum_block(r.shape[1] - BEFORE, r.dtype, r.device)
    holds = go_straight(r, velocity, weights)
    return holds.narrow(1, 0, own).all(1), holds.all(1)


def is_merged_straight(a: TrajectorySegment, b: TrajectorySegment) -> Tensor:
    """True if the union of two stretches, a before b, does not turn, nor either with the nearest
    state of the other [A]."""
    r = torch.stack([a.rho, b.rho, b.first[:, 0], a.last[:, 0]], 1)  # [A, 4, P]
    velocity = torch.stack([a.first[:, 1], b.last[:, 1], b.first[:, 1], a.last[:, 1]], 2)
    return go_straight(r, velocity, sum_merged(r.dtype, r.device)).all(1)


def join_stretches(a: TrajectorySegment, b: TrajectorySegment) -> TrajectorySegment:
    """The union of two stretches, a before b."""
    return TrajectorySegment(a.first, b.last, a.rho + b.rho)
