"""U-turn checks of trajectories from one Gram matrix of inner products.

All inner products that a check needs come from it, and one product sums them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

# Σ_k r_k of these momenta, with this velocity: no more than 0 is a turn
Check = tuple[tuple[int, ...], int]

# Of (ρ_a, ρ_b, first of b, last of a) with the velocities at (first of a, last of b, first of b,
# last of a).
MERGED: tuple[Check, ...] = (
    ((0, 1), 0),
    ((0, 1), 1),
    ((0, 2), 0),
    ((0, 2), 2),
    ((1, 3), 3),
    ((1, 3), 1),
)


@dataclass(frozen=True)
class TrajectorySegment:
    """Consecutive states of A trajectories, in the order in which they were reached."""

    first: Tensor  # r and M⁻¹ r [A, 2, P]
    last: Tensor
    rho: Tensor  # Σ r [A, P]


@cache
def list_turn_checks(n: int) -> tuple[Check, ...]:
    """U-turn checks to make when the last of n = 2^k states is reached.

    They are, for each stretch of 2, 4, … n states that ends there, and for each half of it
    with the nearest state of the other (Stan's checks), its sum with the velocities at both
    ends.
    """
    checks: dict[Check, None] = {}  # two states are their halves: asked once
    for size in (2**k for k in range(1, n.bit_length())):
        a = n - size
        m = n - size // 2
        b = n - 1
        for start, stop in ((a, b), (a, m), (m - 1, b)):
            inside = tuple(range(start, stop + 1))
            checks |= {(inside, start): None, (inside, stop): None}
    return tuple(checks)


@cache
def summing(n: int, checks: tuple[Check, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix [n², checks] by which a Gram matrix [n, n] of n momenta with n velocities becomes
    the checks."""
    coefficients = [
        [[float(k in momenta and end == v) for momenta, v in checks] for end in range(n)]
        for k in range(n)
    ]
    return torch.tensor(coefficients, dtype=dtype, device=device).flatten(0, 1)


def has_turned(r: Tensor, velocity: Tensor, checks: tuple[Check, ...]) -> Tensor:
    """True if any check fails; momenta and velocities [A, n, P] -> [A]."""
    gram = torch.bmm(r, velocity.transpose(1, 2))  # [A, n, n]
    products = gram.flatten(1) @ summing(gram.shape[1], checks, gram.dtype, gram.device)
    return (products <= 0).any(1)


def is_stretch_turning(momenta: Tensor) -> Tensor:
    """True if an aligned stretch that ends at the last of n = 2^k states turns.

    r and M⁻¹r [n, A, 2, P] -> [A].  A stretch with momenta summing to ρ turns if rᵀM⁻¹ρ ≤ 0
    at one of its ends.

    Source: Betancourt (2017), section A.4.2.
    """
    r, velocity = momenta.transpose(0, 1).unbind(2)  # [A, n, P] each
    return has_turned(r, velocity, list_turn_checks(len(momenta)))


def is_merged_turning(a: TrajectorySegment, b: TrajectorySegment) -> Tensor:
    """True if the union of two stretches, a before b, turns [A].

    Also true if either stretch with the nearest state of the other turns.
    """
    r = torch.stack([a.rho, b.rho, b.first[:, 0], a.last[:, 0]], 1)  # [A, 4, P]
    velocity = torch.stack([a.first[:, 1], b.last[:, 1], b.first[:, 1], a.last[:, 1]], 1)
    return has_turned(r, velocity, MERGED)


def join_stretches(a: TrajectorySegment, b: TrajectorySegment) -> TrajectorySegment:
    """The union of two stretches, a before b."""
    return TrajectorySegment(a.first, b.last, a.rho + b.rho)
