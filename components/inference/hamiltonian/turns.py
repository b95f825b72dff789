"""Stretches of a trajectory, joined until one turns (compiled).

A stretch is a matrix [5, P] of consecutive states: r and M⁻¹r of the first, r and M⁻¹r of the last,
and ρ = Σ r of all.
"""

from __future__ import annotations

from components.maths.compiled.loops import Array

FIRST, FIRST_VELOCITY, LAST, LAST_VELOCITY, RHO = range(5)  # rows of a stretch


def is_turning(a: Array, b: Array) -> bool:
    """True if the union of two stretches, a before b, turns.

    Momenta that sum to ρ turn if rᵀM⁻¹ρ ≤ 0 at one of their ends.  Also true if either stretch
    turns with the nearest state of the other (Stan's checks).

    Source: Betancourt (2017), section A.4.2.
    """
    both_first = 0.0
    both_last = 0.0
    a_first = 0.0
    a_last = 0.0
    b_first = 0.0
    b_last = 0.0
    for i in range(a.shape[1]):
        both = a[RHO, i] + b[RHO, i]
        a_next = a[RHO, i] + b[FIRST, i]
        b_before = b[RHO, i] + a[LAST, i]
        both_first += both * a[FIRST_VELOCITY, i]
        both_last += both * b[LAST_VELOCITY, i]
        a_first += a_next * a[FIRST_VELOCITY, i]
        a_last += a_next * b[FIRST_VELOCITY, i]
        b_first += b_before * a[LAST_VELOCITY, i]
        b_last += b_before * b[LAST_VELOCITY, i]
    return (
        both_first <= 0
        or both_last <= 0
        or a_first <= 0
        or a_last <= 0
        or b_first <= 0
        or b_last <= 0
    )


def join_stretches(a: Array, b: Array) -> None:
    """Replace a by the union of a and b, a before b."""
    for i in range(a.shape[1]):
        a[LAST, i] = b[LAST, i]
        a[LAST_VELOCITY, i] = b[LAST_VELOCITY, i]
        a[RHO, i] += b[RHO, i]


def set_state(r: Array, velocity: Array, stretch: Array) -> None:
    """Make a stretch that consists of a single state."""
    for i in range(len(r)):
        stretch[FIRST, i] = r[i]
        stretch[FIRST_VELOCITY, i] = velocity[i]
        stretch[LAST, i] = r[i]
        stretch[LAST_VELOCITY, i] = velocity[i]
        stretch[RHO, i] = r[i]


def extend_subtree(stack: Array, c: int, i: int, r: Array, velocity: Array) -> bool:
    """Add state i to the subtree of a chain; return False if it turned.

    Levels 1, 2, … of the stack [L, C, 5, P] hold aligned stretches, longest first, that wait for
    another one of equal length; two of the same length are checked and joined.
    """
    top = 1
    waiting = i
    while waiting:
        top += waiting & 1
        waiting >>= 1
    set_state(r, velocity, stack[top, c])
    full = i
    while full & 1:
        if is_turning(stack[top - 1, c], stack[top, c]):
            return False
        join_stretches(stack[top - 1, c], stack[top, c])
        top -= 1
        full >>= 1
    return True
