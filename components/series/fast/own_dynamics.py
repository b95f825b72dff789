"""Draws of the coefficients of rows of G given the states, compiled.

    target_t = design_t φ + N(0, scale²), t = 2 … n,  φ ~ N(mean, I/precision) where it may lie

Source: Scott and Varian (2014), section 2.2, as bsts does it; Neal (2003) of one coefficient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from components.maths.compiled.loops import Array
from components.maths.compiled.normals import mixed
from components.series.fast import memory, stocks
from components.series.fast.memory import clear, clear_rows
from components.series.fast.stocks import factor
from components.series.fast.truncated_gamma import counter_uniform

TRIES = 30  # draws of an autoregression's coefficients; the first that is stationary is taken


class OwnRow(NamedTuple):
    """G_row = base + Σ_j φ_j terms_j, and the prior of φ [k]."""

    row: int
    base: Array  # [d]
    terms: Array  # [k, d]
    precision: float
    mean: float
    is_bounded: bool  # each within (low, high); else where the autoregression is stationary
    low: float
    high: float


class RowWork(NamedTuple):
    """Memory of one draw, for at most q coefficients."""

    A: Array  # precision [q, q]
    b: Array  # pull [q]
    design: Array  # [q]
    phi: Array  # [q]
    lower: Array  # φ of the autoregression of one order less [q]


def row_work(q: int) -> RowWork:
    """New memory."""
    vectors = [np.empty(q) for _ in range(4)]
    return RowWork(np.empty((q, q)), *vectors)


def multiply_rows(a: Array, b: Array) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def weigh_row(row: OwnRow, alpha: Array, scale: float, work: RowWork) -> None:
    """Precision A and pull b of φ given states [n, d]: its conditional is N(A⁻¹b, A⁻¹)."""
    A = work.A
    b = work.b
    design = work.design
    k = len(row.terms)
    clear_rows(A)
    clear(b)
    for t in range(len(alpha) - 1):
        target = alpha[t + 1, row.row] - multiply_rows(alpha[t], row.base)
        for i in range(k):
            design[i] = multiply_rows(alpha[t], row.terms[i])
            b[i] += design[i] * target
            for j in range(i + 1):
                A[i, j] += design[i] * design[j]
    weight = 1 / (scale * scale)
    for i in range(k):
        b[i] = b[i] * weight + row.precision * row.mean
        for j in range(i + 1):
            A[i, j] *= weight
        A[i, i] += row.precision


def is_stationary(phi: Array, lower: Array) -> bool:
    """True if x_t = Σ φ_j x_{t−j} + ε_t is: all partial autocorrelations lie in (−1, 1).

    Source: Monahan (1984).
    """
    k = len(phi)
    for order in range(k, 0, -1):
        r = phi[order - 1]
        if not abs(r) < 1:
            return False
        for j in range(order - 1):
            lower[j] = (phi[j] + r * phi[order - 2 - j]) / (1 - r * r)
        for j in range(order - 1):
            phi[j] = lower[j]
    return True


def is_allowed(row: OwnRow, phi: Array, lower: Array) -> bool:
    """True if φ [k] lies where the prior has it; φ is overwritten."""
    if not row.is_bounded:
        return is_stationary(phi, lower)
    allowed = True
    for j in range(len(phi)):
        allowed = allowed and row.low < phi[j] < row.high
    return allowed


def hashed_normal(seed: Any, k: int) -> float:
    """A standard normal number of the hashed numbers k and k + 1 (Box and Muller 1958)."""
    radius = math.sqrt(-2 * math.log(counter_uniform(seed, k)))
    return radius * math.cos(2 * math.pi * counter_uniform(seed, k + 1))


def draw_several(row: OwnRow, seed: Any, phi: Array, work: RowWork) -> None:
    """φ from N(A⁻¹b, A⁻¹), drawn until it is allowed, at most 30 times: after that the old φ stays.

    Exact: a refused draw leaves the conditional as it is.
    """
    k = len(phi)
    A = work.A
    tried = work.phi
    factor(A, work.b, k)
    for attempt in range(TRIES):
        for i in range(k - 1, -1, -1):  # Lᵀ φ = L⁻¹ b + z
            tried[i] = work.b[i] + hashed_normal(seed, 2 * (attempt * k + i))
            for j in range(i + 1, k):
                tried[i] -= A[j, i] * work.design[j]
            tried[i] /= A[i, i]
            work.design[i] = tried[i]
        if is_allowed(row, tried[:k], work.lower):
            for i in range(k):
                phi[i] = work.design[i]
            return


compilable = (
    *memory.compilable,
    mixed,
    *stocks.compilable,
    multiply_rows,
    weigh_row,
    is_stationary,
    is_allowed,
    hashed_normal,
    draw_several,
)
