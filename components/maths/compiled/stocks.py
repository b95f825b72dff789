"""Stocks that flow in and fade, and what observations say of how fast, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compiled


def fading(flow: Array, kept: float, s: Array) -> None:
    """s_1 = 0, s_{t+1} = φ s_t + u_t [n], by windows that double: the bits of ``maths.series.stocks.grown``."""
    n = len(flow)
    s[0] = 0.0
    for t in range(1, n):
        s[t] = flow[t - 1]
    width, power = 1, kept
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


def _tell(
    columns: Array, flow: Array, fades: Array, kept: Array, weights: Array, left: Array, omega: Array, gamma: Array,
    sigma: Array, found: Array,
) -> None:  # fmt: skip
    C, p, n = columns.shape
    V, L, b, on = np.empty((p, n)), np.empty((p, p)), np.empty(p), np.empty(p, dtype=np.int64)
    for c in range(C):
        k = 0
        for j in range(p):
            if gamma[c, j]:
                on[k] = j
                if fades[j]:
                    fading(flow[j], kept[c], V[k])
                else:
                    for t in range(n):
                        V[k, t] = columns[c, j, t]
                k += 1
        value = 0.0
        for i in range(k):  # the factor of A + Ω, row by row, and L⁻¹ b beside it
            told = 0.0
            for t in range(n):
                told += V[i, t] * weights[c, t] * left[c, t]
            for j in range(i + 1):
                total = omega[on[i], on[j]]
                for t in range(n):
                    total += V[i, t] * weights[c, t] * V[j, t]
                for m in range(j):
                    total -= L[i, m] * L[j, m]
                L[i, j] = total / L[j, j] if j < i else math.sqrt(total)
            for m in range(i):
                told -= L[i, m] * b[m]
            b[i] = told / L[i, i]
            value += b[i] * b[i] / (2 * sigma[c] * sigma[c]) - math.log(L[i, i])
        found[c] = value


@cache
def _growing() -> Callable[[Array, Array, Array], None]:
    return compiled(_grow, [fading])


@cache
def _telling() -> Callable[..., None]:
    return compiled(_tell, [fading], fast=True)


def grown(flow: Tensor, kept: Tensor) -> Tensor:
    """What ``maths.series.stocks.grown`` has, of flows [n, k] and φ [C, k] on the CPU; [C, n, k].

    Raises:
        ImportError: numba is not installed.
    """
    out = kept.new_empty(len(kept), *flow.shape)
    _growing()(flow.T.contiguous().numpy(), kept.contiguous().numpy(), out.numpy())
    return out


def log_evidence(
    columns: Tensor, flow: Tensor, fades: Tensor, kept: Tensor, weights: Tensor, left: Tensor, omega: Tensor,
    gamma: Tensor, sigma: Tensor,
) -> Tensor:  # fmt: skip
    """log p(e | γ, σ) [C] up to a constant, β summed out, where those columns [C, p, n] that ``fades`` [p] names are stocks of
    flows [p, n] with φ [C]: ``maths.conditionals.spike_slab.log_evidence`` of the moments of e [C, n], weighed [C, n].

    Raises:
        ImportError: numba is not installed.
    """
    found = kept.new_empty(len(kept))
    arrays = (columns, flow, fades, kept, weights, left, omega, gamma, sigma, found)
    _telling()(*(x.contiguous().numpy() for x in arrays))
    return found
