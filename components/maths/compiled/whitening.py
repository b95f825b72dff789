"""What a filter leaves of columns, and the regression on it, compiled: the bits of ``maths.series.whitening``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from torch import Tensor

from components.maths.compiled import spike_slab
from components.maths.compiled.loops import Array, compiled
from components.maths.compiled.simulation_smoother import product, whole
from components.maths.compiled.spike_slab import given
from components.maths.conditionals.spike_slab import SlabNumbers, SpikeSlab
from components.maths.series.simulation_smoother import StateLayout


def whiten(
    beside: Array, seen: Array, F: Array, used: Array, mean: Array, sd: Array, start: Array, columns: Array, values: Array,
    noisy: Array, scale: Array, noise: Array, P: Array, X: Array, A: Array, M: Array, moved: Array, out: Array,
) -> None:  # fmt: skip
    """What is left of the rows of ``beside`` [q, n], of which the last is y, in ``out`` [q, n]; their states in A [q, d]."""
    n, d = F.shape
    q = len(beside)
    for i in range(d):
        for c in range(q):
            A[c, i] = mean[i] if c == q - 1 else 0.0
        for j in range(d):
            P[i, j] = sd[i] * sd[i] if i == j else 0.0
    for t in range(n):
        if seen[t]:
            f = 0.0
            for i in range(d):
                total = 0.0
                for j in used:
                    total += P[i, j] * F[t, j]
                M[i] = total
            for i in used:
                f += F[t, i] * M[i]
            f += noise[t] * noise[t]
            width = math.sqrt(f)
            for c in range(q):
                told = 0.0
                for i in used:
                    told += A[c, i] * F[t, i]
                v = beside[c, t] - told
                out[c, t] = v / width
                for i in range(d):
                    A[c, i] += M[i] / f * v
            for i in range(d):
                for j in range(i + 1):
                    P[i, j] -= M[i] * M[j] / f
                    P[j, i] = P[i, j]
        else:
            for c in range(q):
                out[c, t] = 0.0
        if t == n - 1:
            break
        for c in range(q):
            product(start, columns, values, A[c], moved)
            for i in range(d):
                A[c, i] = moved[i]
        for i in range(d):  # G P, row by row
            for j in range(d):
                X[i, j] = 0.0
            for k in range(start[i], start[i + 1]):
                value, column = values[k], columns[k]
                for j in range(d):
                    X[i, j] += value * P[column, j]
        for i in range(d):
            for j in range(i + 1):
                total = 0.0
                for k in range(start[i], start[i + 1]):
                    total += values[k] * X[j, columns[k]]
                P[i, j] = total
                P[j, i] = total
        for k in range(len(noisy)):
            P[noisy[k], noisy[k]] += scale[k] * scale[k]


def _chains(
    beside: Array, seen: Array, F: Array, used: Array, mean: Array, sd: Array, start: Array, columns: Array, values: Array,
    noisy: Array, scale: Array, noise: Array, omega: Array, logit: Array, sigma: Array, u: Array, turn: Array, z: Array,
    gamma: Array, beta: Array,
) -> None:  # fmt: skip
    C, q, n = beside.shape
    p, d = q - 1, F.shape[1]
    P, X, A, M, moved, out = (
        np.empty((d, d)), np.empty((d, d)), np.empty((q, d)), np.empty(d), np.empty(d), np.empty((q, n)),
    )  # fmt: skip
    N, E, row, gram, b = np.empty((q, q)), np.empty((p, p)), np.empty(q), np.empty((p, p)), np.empty(p)
    for c in range(C):
        whiten(beside[c], seen, F, used, mean, sd, start, columns, values[c], noisy, scale[c], noise[c], P, X, A, M, moved, out)
        unit = sigma[c] * sigma[c]
        for i in range(p):
            for j in range(i + 1):
                total = 0.0
                for t in range(n):
                    total += out[i, t] * out[j, t]
                gram[i, j] = unit * total
                gram[j, i] = gram[i, j]
            total = 0.0
            for t in range(n):
                total += out[i, t] * out[p, t]
            b[i] = unit * total
        given(gram, b, omega, logit, sigma[c], u[c], turn[c], z[c], gamma[c], beta[c], N, E, row)


@cache
def _loop() -> Callable[..., None]:
    return compiled(_chains, (*spike_slab.compilable, product, given, whiten))


def draw(
    prior: SpikeSlab, layout: StateLayout, beside: Tensor, G: Tensor, scale: Tensor, noise: Tensor, sigma: Tensor,
    gamma: Tensor, numbers: SlabNumbers,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(γ, β) [C, p] given σ [C], from what is left of columns [C, n, p + 1], of which the last is y, on the CPU.

    Raises:
        ImportError: numba is not installed.
    """
    gamma, beta = gamma.clone(), numbers.z.new_empty(gamma.shape)
    used = (layout.F != 0).any(0).nonzero().flatten()
    arrays = (beside.mT, layout.seen, layout.F, used, layout.mean, layout.sd)
    rows = (whole(layout.rows.start), whole(layout.rows.columns), layout.rows.numbers(G).contiguous().numpy())
    known = (scale, noise, prior.precision, prior.logit, sigma, numbers.u, numbers.turn, numbers.z, gamma, beta)
    _loop()(*(x.contiguous().numpy() for x in arrays), *rows, whole(layout.noisy), *(x.contiguous().numpy() for x in known))
    return gamma, beta
