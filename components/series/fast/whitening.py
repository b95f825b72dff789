"""Compiled whitening of columns by a filter, and the regression on the result.

It gives the same bits as ``maths.series.whitening``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.series.conditionals.spike_slab import SlabRandomNumbers, SpikeSlab
from components.series.fast import spike_slab
from components.series.fast.simulation_smoother import (
    condition_covariance,
    foretold,
    predict_covariance,
    whole,
)
from components.series.fast.spike_slab import update_given_sigma
from components.series.maths.simulation_smoother import StateLayout


def whiten(
    beside: Array,
    seen: Array,
    F: Array,
    used: Array,
    mean: Array,
    sd: Array,
    start: Array,
    columns: Array,
    values: Array,
    noisy: Array,
    scale: Array,
    noise: Array,
    P: Array,
    X: Array,
    A: Array,
    moved: Array,
    M: Array,
    told: Array,
    out: Array,
) -> None:
    """Whitened columns in ``out`` [n, q], the last column being y; their states in A [d, q]."""
    n, d = F.shape
    q = beside.shape[1]
    for i in range(d):
        for c in range(q):
            A[i, c] = 0.0
        A[i, q - 1] = mean[i]
        for j in range(d):
            P[i, j] = sd[i] * sd[i] if i == j else 0.0
    for t in range(n):
        if seen[t]:
            f = foretold(P, F, t, used, noise[t], M)
            width = math.sqrt(f)
            for c in range(q):
                told[c] = 0.0
            for i in used:
                row = F[t, i]
                state = A[i]
                for c in range(q):
                    told[c] += state[c] * row
            for c in range(q):
                told[c] = beside[t, c] - told[c]
                out[t, c] = told[c] / width
            for i in range(d):
                gain = M[i] / f
                state = A[i]
                for c in range(q):
                    state[c] += gain * told[c]
            condition_covariance(P, M, f)
        else:
            for c in range(q):
                out[t, c] = 0.0
        if t == n - 1:
            break
        for i in range(d):
            state = moved[i]
            for c in range(q):
                state[c] = 0.0
            for k in range(start[i], start[i + 1]):
                value = values[k]
                other = A[columns[k]]
                for c in range(q):
                    state[c] += value * other[c]
        for i in range(d):
            for c in range(q):
                A[i, c] = moved[i, c]
        predict_covariance(start, columns, values, noisy, scale, P, X)


def gram(left: Array, unit: float, G: Array) -> None:
    """``unit`` times what columns [n, q] are to each other, the lower half [q, q]."""
    n, q = left.shape
    for i in range(q):
        for j in range(i + 1):
            G[i, j] = 0.0
    for t in range(n):
        row = left[t]
        for i in range(q):
            sums = G[i]
            for j in range(i + 1):
                sums[j] += row[i] * row[j]
    for i in range(q):
        for j in range(i + 1):
            G[i, j] *= unit


def columns_first(
    left: Array,
    omega: Array,
    logit: Array,
    sigma: float,
    u: Array,
    turn: float,
    z: Array,
    gamma: Array,
    beta: Array,
    N: Array,
    E: Array,
    row: Array,
    G: Array,
    A: Array,
    b: Array,
) -> None:
    """γ and β given σ from what the filter leaves of columns and, last, of y [n, p + 1]; they are
    left in their arrays."""
    p = len(gamma)
    gram(left, sigma * sigma, G)
    for i in range(p):
        b[i] = G[p, i]
        for j in range(i + 1):
            A[i, j] = G[i, j]
            A[j, i] = G[i, j]
    update_given_sigma(A, b, omega, logit, sigma, u, turn, z, gamma, beta, N, E, row)


compilable = (
    *spike_slab.compilable,
    update_given_sigma,
    foretold,
    condition_covariance,
    predict_covariance,
    whiten,
    gram,
    columns_first,
)


def _chains(
    beside: Array,
    seen: Array,
    F: Array,
    used: Array,
    mean: Array,
    sd: Array,
    start: Array,
    columns: Array,
    values: Array,
    noisy: Array,
    scale: Array,
    noise: Array,
    omega: Array,
    logit: Array,
    sigma: Array,
    u: Array,
    turn: Array,
    z: Array,
    gamma: Array,
    beta: Array,
) -> None:
    C, n, q = beside.shape
    p = q - 1
    d = F.shape[1]
    P = np.empty((d, d))
    X = np.empty((d, d))
    A = np.empty((d, q))
    moved = np.empty((d, q))
    M = np.empty(d)
    predicted = np.empty(q)
    out = np.empty((n, q))
    N = np.empty((q, q))
    E = np.empty((p, p))
    row = np.empty(q)
    G = np.empty((q, q))
    B = np.empty((p, p))
    b = np.empty(p)
    for c in range(C):
        whiten(
            beside[c],
            seen,
            F,
            used,
            mean,
            sd,
            start,
            columns,
            values[c],
            noisy,
            scale[c],
            noise[c],
            P,
            X,
            A,
            moved,
            M,
            predicted,
            out,
        )
        columns_first(
            out, omega, logit, sigma[c], u[c], turn[c], z[c], gamma[c], beta[c], N, E, row, G, B, b
        )


@cache
def _loop() -> Callable[..., None]:
    return compile_loop(_chains, compilable)


def draw(
    prior: SpikeSlab,
    layout: StateLayout,
    beside: Tensor,
    G: Tensor,
    scale: Tensor,
    noise: Tensor,
    sigma: Tensor,
    gamma: Tensor,
    numbers: SlabRandomNumbers,
) -> tuple[Tensor, Tensor]:
    """(γ, β) [C, p] given σ [C], from columns [C, n, p + 1], the last being y, on the CPU.

    The draw uses the columns after whitening.

    Raises:
        ImportError: numba is not installed.
    """
    gamma, beta = gamma.clone(), numbers.z.new_empty(gamma.shape)
    used = (layout.F != 0).any(0).nonzero().flatten()
    arrays = (beside, layout.seen, layout.F, used, layout.mean, layout.sd)
    rows = (
        whole(layout.rows.start),
        whole(layout.rows.columns),
        layout.rows.numbers(G).contiguous().numpy(),
    )
    arguments = (
        scale,
        noise,
        prior.precision,
        prior.logit,
        sigma,
        numbers.u,
        numbers.turn,
        numbers.z,
        gamma,
        beta,
    )
    _loop()(
        *(x.contiguous().numpy() for x in arrays),
        *rows,
        whole(layout.noisy),
        *(x.contiguous().numpy() for x in arguments),
    )
    return gamma, beta
