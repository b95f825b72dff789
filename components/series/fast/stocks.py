"""Stocks that flow in and fade, and what observations say of how fast, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.maths.compiled.normals import mixed
from components.series.fast.truncated_gamma import counter_uniform

SHRINKAGES = 200  # of an interval, which has 1e-60 of its length after half of them


class FadingRegression(NamedTuple):
    """e = X(φ) β + N(0, σ²/λ) of one chain; columns that fade with φ_q are stocks."""

    columns: Array  # Xᵀ at the other φ of the chain [p, n]
    flow: Array  # what flows in where a column is a stock [p, n]
    fades: Array  # which φ a column fades with, −1: it is no stock [p]
    q: int  # the φ that is drawn
    is_told: bool  # some column fades with it: e says something of φ
    omega: Array  # Ω [p, p] of the slab
    gamma: Array  # columns that are in [p] bool
    left: Array  # e [n], 0 at times that are not seen
    weights: Array  # λ [n], 0 at times that are not seen
    limits: Array  # κ of columns that are stocks with a limit, 0: without [p]


class FadingWork(NamedTuple):
    """Memory of the evidence."""

    V: Array  # columns that are in [n, p]
    A: Array  # [p, p]
    b: Array  # [p]
    s: Array  # a stock [n]
    inside: Array  # their places [p]


def fading_work(n: int, p: int) -> FadingWork:
    """New memory."""
    V = np.empty((n, p))
    A = np.empty((p, p))
    return FadingWork(V, A, np.empty(p), np.empty(n), np.empty(p, dtype=np.int64))


def accumulate(flow: Array, kept: float, limit: float, s: Array) -> None:
    """s_1 = 0, s_{t+1} = (φ − κ u_t) s_t + u_t [n]; of limit κ = 0 by windows that double.

    Σ_{j<2w} φ^j u_{t−j} = Σ_{j<w} φ^j u_{t−j} + φ^w Σ_{j<w} φ^j u_{t−w−j}: each pass can use
    vectors."""
    n = len(flow)
    s[0] = 0.0
    for t in range(1, n):
        s[t] = flow[t - 1]
        if limit > 0.0:
            s[t] += (kept - limit * flow[t - 1]) * s[t - 1]
    width = n if limit > 0.0 else 1
    power = kept
    while width < n:
        for t in range(n - 1, width - 1, -1):
            s[t] += power * s[t - width]
        power *= power
        width *= 2


def factor(A: Array, b: Array, k: int) -> None:
    """L in the place of the lower half of A = L Lᵀ [k, k], and L⁻¹ b in the place of b."""
    for i in range(k):
        for j in range(i + 1):
            total = A[i, j]
            for m in range(j):
                total -= A[i, m] * A[j, m]
            A[i, j] = total / A[j, j] if j < i else math.sqrt(total)
        rest = b[i]
        for m in range(i):
            rest -= A[i, m] * b[m]
        b[i] = rest / A[i, i]


def gather_columns(fading: FadingRegression, kept: float, work: FadingWork) -> int:
    """Columns that are in side by side in V, those that fade as stocks with φ ``kept``; how
    many."""
    p, n = fading.columns.shape
    V = work.V
    s = work.s
    k = 0
    for j in range(p):
        if fading.is_told and fading.gamma[j]:
            work.inside[k] = j
            row = fading.columns[j]
            if fading.fades[j] == fading.q:
                accumulate(fading.flow[j], kept, fading.limits[j], s)
                row = s
            for t in range(n):
                V[t, k] = row[t]
            k += 1
    return k


def log_evidence(fading: FadingRegression, sigma: float, kept: float, work: FadingWork) -> float:
    """log p(e | γ, σ, φ = ``kept``) up to a constant, β summed out.

    −½ log |A_γγ + Ω_γγ| + b_γᵀ (A_γγ + Ω_γγ)⁻¹ b_γ/(2 σ²),  A = XᵀΛX, b = XᵀΛe.
    """
    V = work.V
    A = work.A
    b = work.b
    k = gather_columns(fading, kept, work)
    for i in range(k):
        b[i] = 0.0
        for j in range(i + 1):
            A[i, j] = fading.omega[work.inside[i], work.inside[j]]
    for t in range(len(V)):
        for i in range(k):
            weighed = fading.weights[t] * V[t, i]
            b[i] += weighed * fading.left[t]
            for j in range(i + 1):
                A[i, j] += weighed * V[t, j]
    factor(A, b, k)
    value = 0.0
    for i in range(k):
        value += b[i] * b[i] / (2 * sigma * sigma) - math.log(A[i, i])
    return value


class NormalPart(NamedTuple):
    """exp(pull φ − ½ precision φ²) on (low, high)."""

    precision: float
    pull: float
    low: float
    high: float


def slice_coefficient(
    fading: FadingRegression, sigma: float, part: NormalPart, x: float, seed: Any, work: FadingWork
) -> float:
    """φ by slice sampling of the evidence times a normal part, from x.

    log u is uniform below the density at x; then uniform points of an interval that begins as (low,
    high) and shrinks to x, until one lies above.  The uniforms are hashed from the seed.

    Source: Neal (2003), section 4, figure 5.
    """
    precision = part.precision
    pull = part.pull
    level = log_evidence(fading, sigma, x, work) + (pull - 0.5 * precision * x) * x
    level += math.log(counter_uniform(seed, 0))
    below = part.low
    above = part.high
    for k in range(1, SHRINKAGES + 1):
        point = below + (above - below) * counter_uniform(seed, k)
        value = log_evidence(fading, sigma, point, work)
        if value + (pull - 0.5 * precision * point) * point >= level:
            return point
        if point < x:
            below = point
        else:
            above = point
    return x


compilable = (
    mixed,
    counter_uniform,
    accumulate,
    factor,
    gather_columns,
    log_evidence,
    slice_coefficient,
)


def _accumulate_all(flow: Array, kept: Array, limits: Array, out: Array) -> None:
    C, n, k = out.shape
    s = np.empty(n)
    for c in range(C):
        for j in range(k):
            accumulate(flow[j], kept[c, j], limits[j], s)
            for t in range(n):
                out[c, t, j] = s[t]


@cache
def _loop() -> Callable[[Array, Array, Array, Array], None]:
    return compile_loop(_accumulate_all, [accumulate])


def accumulate_stock(flow: Tensor, kept: Tensor, limits: Tensor) -> Tensor:
    """``maths.series.stocks.accumulate_stock`` of flows [n, k], φ [C, k] and κ [k] on the
    CPU; [C, n, k]."""
    out = kept.new_empty(len(kept), *flow.shape)
    _loop()(
        flow.T.contiguous().numpy(),
        kept.contiguous().numpy(),
        limits.contiguous().numpy(),
        out.numpy(),
    )
    return out
