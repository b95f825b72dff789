"""Stocks that flow in and fade, and what observations say of how fast, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.maths.compiled.normals import mixed
from components.series.conditionals.slice_sampling import MOST, seeds_of
from components.series.conditionals.truncated_gamma import counter_uniform


def fading(flow: Array, kept: float, s: Array) -> None:
    """s_1 = 0, s_{t+1} = φ s_t + u_t [n], by windows that double: the bits of
    ``maths.series.stocks.accumulate_stock``."""
    n = len(flow)
    s[0] = 0.0
    for t in range(1, n):
        s[t] = flow[t - 1]
    width = 1
    power = kept
    while width < n:
        for t in range(n - 1, width - 1, -1):
            s[t] += power * s[t - width]
        power *= power
        width *= 2


def _grow(flow: Array, kept: Array, out: Array) -> None:
    C, n, k = out.shape
    s = np.empty(n)
    for c in range(C):
        for j in range(k):
            fading(flow[j], kept[c, j], s)
            for t in range(n):
                out[c, t, j] = s[t]


def evidence(
    columns: Array,
    flow: Array,
    fades: Array,
    kept: float,
    weights: Array,
    left: Array,
    omega: Array,
    gamma: Array,
    sigma: float,
    V: Array,
    A: Array,
    b: Array,
    s: Array,
    on: Array,
) -> float:
    """log p(e | γ, σ) of one chain up to a constant, β summed out: columns that are in and fade are
    stocks with φ ``kept``."""
    p, n = columns.shape
    k = 0
    for j in range(p):
        if gamma[j]:
            on[k] = j
            if fades[j]:
                fading(flow[j], kept, s)
            for t in range(n):
                V[t, k] = s[t] if fades[j] else columns[j, t]
            k += 1
    for i in range(k):
        b[i] = 0.0
        for j in range(i + 1):
            A[i, j] = omega[on[i], on[j]]
    for t in range(n):
        for i in range(k):
            weighed = weights[t] * V[t, i]
            b[i] += weighed * left[t]
            for j in range(i + 1):
                A[i, j] += weighed * V[t, j]
    value = 0.0
    for i in range(k):  # L replaces A, and L⁻¹ b replaces b
        for j in range(i + 1):
            total = A[i, j]
            for m in range(j):
                total -= A[i, m] * A[j, m]
            A[i, j] = total / A[j, j] if j < i else math.sqrt(total)
        residual = b[i]
        for m in range(i):
            residual -= A[i, m] * b[m]
        b[i] = residual / A[i, i]
        value += b[i] * b[i] / (2 * sigma * sigma) - math.log(A[i, i])
    return value


def slice_one(
    columns: Array,
    flow: Array,
    fades: Array,
    weights: Array,
    left: Array,
    omega: Array,
    gamma: Array,
    sigma: float,
    precision: float,
    pull: float,
    x: float,
    low: float,
    high: float,
    seed: Any,
    V: Array,
    A: Array,
    b: Array,
    s: Array,
    on: Array,
) -> float:
    """φ of one chain."""
    value = evidence(columns, flow, fades, x, weights, left, omega, gamma, sigma, V, A, b, s, on)
    level = value + (pull - 0.5 * precision * x) * x + math.log(counter_uniform(seed, 0))
    below = low
    above = high
    for k in range(1, MOST + 1):
        point = below + (above - below) * counter_uniform(seed, k)
        value = evidence(
            columns, flow, fades, point, weights, left, omega, gamma, sigma, V, A, b, s, on
        )
        if value + (pull - 0.5 * precision * point) * point >= level:
            return point
        if point < x:
            below = point
        else:
            above = point
    return x


compilable = (mixed, counter_uniform, fading, evidence, slice_one)


def _slice(
    columns: Array,
    flow: Array,
    fades: Array,
    weights: Array,
    left: Array,
    omega: Array,
    gamma: Array,
    sigma: Array,
    precision: Array,
    pull: Array,
    x: Array,
    low: float,
    high: float,
    seeds: Array,
    found: Array,
) -> None:
    C, p, n = columns.shape
    V = np.empty((n, p))
    A = np.empty((p, p))
    b = np.empty(p)
    s = np.empty(n)
    on = np.empty(p, dtype=np.int64)
    for c in range(C):
        w = weights[c % len(weights)]
        found[c] = slice_one(
            columns[c],
            flow,
            fades,
            w,
            left[c],
            omega,
            gamma[c],
            sigma[c],
            precision[c],
            pull[c],
            x[c],
            low,
            high,
            seeds[c],
            V,
            A,
            b,
            s,
            on,
        )


@cache
def _compiled_grow() -> Callable[[Array, Array, Array], None]:
    return compile_loop(_grow, [fading])


@cache
def _compile_slice() -> Callable[..., None]:
    return compile_loop(_slice, compilable)


def accumulate_stock(flow: Tensor, kept: Tensor) -> Tensor:
    """Compiled ``maths.series.stocks.accumulate_stock`` [C, n, k], on the CPU.

    The flows are [n, k] and φ is [C, k].

    Raises:
        ImportError: numba is not installed.
    """
    out = kept.new_empty(len(kept), *flow.shape)
    _compiled_grow()(flow.T.contiguous().numpy(), kept.contiguous().numpy(), out.numpy())
    return out


def slice_sample(
    columns: Tensor,
    flow: Tensor,
    fades: Tensor,
    weights: Tensor,
    left: Tensor,
    omega: Tensor,
    gamma: Tensor,
    sigma: Tensor,
    precision: Tensor,
    pull: Tensor,
    x: Tensor,
    low: float,
    high: float,
    generator: torch.Generator,
) -> Tensor:
    """Compiled ``maths.conditionals.slice_sampling.slice_sample`` of φ [C], on the CPU.

    The log density is a normal's, (pull − ½ precision φ) φ, plus the log-likelihood of
    observations e [C, n] with weights [C or 1, n], β summed out: the columns [C, p, n] that
    ``fades`` [p] names are stocks of flows [p, n].

    Raises:
        ImportError: numba is not installed.
    """
    out = x.clone()
    arrays = (columns, flow, fades, weights, left, omega, gamma, sigma, precision, pull, x)
    inputs = [a.contiguous().numpy() for a in arrays]
    _compile_slice()(*inputs, low, high, seeds_of(len(x), generator), out.numpy())
    return out
