"""Draws of the states of a linear Gaussian series, compiled: the bits of
``maths.series.simulation_smoother``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.series.maths.simulation_smoother import StateLayout, StateRandomNumbers


def product(start: Array, columns: Array, values: Array, x: Array, out: Array) -> None:
    """out = G x, of one vector."""
    for i in range(len(out)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total


def foretold(P: Array, F: Array, t: int, used: Array, noise: float, M: Array) -> float:
    """P F_t, which is left in M, and the variance f = F P F + h² of its observation."""
    f = 0.0
    for i in range(len(M)):
        total = 0.0
        for j in used:
            total += P[i, j] * F[t, j]
        M[i] = total
    for i in used:
        f += F[t, i] * M[i]
    return f + noise * noise


def condition_covariance(P: Array, M: Array, f: float) -> None:
    """P ← P − M Mᵀ/f: the states given what was seen."""
    for i in range(len(M)):
        for j in range(i + 1):
            P[i, j] -= M[i] * M[j] / f
            P[j, i] = P[i, j]


def predict_covariance(
    start: Array, columns: Array, values: Array, noisy: Array, scale: Array, P: Array, X: Array
) -> None:
    """P ← G P Gᵀ + W, one time on; X is overwritten."""
    d = len(P)
    for i in range(d):  # G P, row by row
        for j in range(d):
            X[i, j] = 0.0
        for k in range(start[i], start[i + 1]):
            value = values[k]
            column = columns[k]
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


def forwards(
    y: Array,
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
    first: Array,
    shocks: Array,
    errors: Array,
    P: Array,
    X: Array,
    vectors: Array,
    gains: Array,
    scaled: Array,
) -> None:
    """The filter of y less the observations that are drawn on the way: gains K [n, d] and v/f
    [n]."""
    n, d = F.shape
    a = vectors[0]
    plus = vectors[1]
    M = vectors[2]
    moved = vectors[3]
    for i in range(d):
        a[i] = mean[i]
        plus[i] = sd[i] * first[i]
        for j in range(d):
            P[i, j] = sd[i] * sd[i] if i == j else 0.0
    for t in range(n):
        if seen[t]:
            signal = 0.0
            predicted = 0.0
            for i in used:
                signal += F[t, i] * plus[i]
                predicted += F[t, i] * a[i]
            v = y[t] - signal - noise[t] * errors[t] - predicted
            f = foretold(P, F, t, used, noise[t], M)
            scaled[t] = v / f
            for i in range(d):
                gains[t, i] = M[i] / f
                a[i] += gains[t, i] * v
            condition_covariance(P, M, f)
        else:
            scaled[t] = 0.0
            for i in range(d):
                gains[t, i] = 0.0
        if t == n - 1:
            break
        product(start, columns, values, a, moved)
        for i in range(d):
            a[i] = moved[i]
        product(start, columns, values, plus, moved)
        for i in range(d):
            plus[i] = moved[i]
        predict_covariance(start, columns, values, noisy, scale, P, X)
        for k in range(len(noisy)):
            plus[noisy[k]] += scale[k] * shocks[t, k]


def backwards(
    seen: Array,
    F: Array,
    used: Array,
    start: Array,
    columns: Array,
    values: Array,
    noisy: Array,
    vectors: Array,
    gains: Array,
    scaled: Array,
    pulls: Array,
) -> None:
    """r_0, which is left in ``vectors[0]``, and r_t of the noisy states [n − 1, k]."""
    n, d = F.shape
    r = vectors[0]
    moved = vectors[3]
    for i in range(d):
        r[i] = 0.0
    for t in range(n - 1, -1, -1):
        if t < n - 1:
            for k in range(len(noisy)):
                pulls[t, k] = r[noisy[k]]
            for i in range(d):
                moved[i] = 0.0
            for i in range(d):  # Gᵀ r: of each column the rows in their order
                for k in range(start[i], start[i + 1]):
                    moved[columns[k]] += values[k] * r[i]
            for i in range(d):
                r[i] = moved[i]
        if seen[t]:
            total = 0.0
            for i in range(d):
                total += gains[t, i] * r[i]
            s = scaled[t] - total
            for i in used:
                r[i] += F[t, i] * s


def states(
    mean: Array,
    sd: Array,
    start: Array,
    columns: Array,
    values: Array,
    noisy: Array,
    scale: Array,
    first: Array,
    shocks: Array,
    vectors: Array,
    pulls: Array,
    alpha: Array,
    eta: Array,
) -> None:
    """α [n, d] and its noise [n − 1, k]."""
    n, d = alpha.shape
    r = vectors[0]
    for i in range(d):
        alpha[0, i] = mean[i] + sd[i] * first[i] + sd[i] * sd[i] * r[i]
    for t in range(n - 1):
        product(start, columns, values, alpha[t], alpha[t + 1])
        for k in range(len(noisy)):
            eta[t, k] = scale[k] * shocks[t, k] + scale[k] * scale[k] * pulls[t, k]
            alpha[t + 1, noisy[k]] += eta[t, k]


compilable = (
    product,
    foretold,
    condition_covariance,
    predict_covariance,
    forwards,
    backwards,
    states,
)


def _chains(
    y: Array,
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
    first: Array,
    shocks: Array,
    errors: Array,
    alpha: Array,
    eta: Array,
) -> None:
    C, n, d = alpha.shape
    P = np.empty((d, d))
    X = np.empty((d, d))
    vectors = np.empty((4, d))
    gains = np.empty((n, d))
    scaled = np.empty(n)
    pulls = np.empty((n, len(noisy)))
    for c in range(C):
        forwards(
            y[c],
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
            first[c],
            shocks[c],
            errors[c],
            P,
            X,
            vectors,
            gains,
            scaled,
        )
        backwards(seen, F, used, start, columns, values[c], noisy, vectors, gains, scaled, pulls)
        states(
            mean,
            sd,
            start,
            columns,
            values[c],
            noisy,
            scale[c],
            first[c],
            shocks[c],
            vectors,
            pulls,
            alpha[c],
            eta[c],
        )


@cache
def _loop() -> Callable[..., None]:
    return compile_loop(_chains, compilable)


@cache
def whole(numbers: tuple[int, ...]) -> Array:
    """Whole numbers as an array."""
    return np.array(numbers, dtype=np.int64)


def simulate_states(
    layout: StateLayout,
    y: Tensor,
    G: Tensor,
    scale: Tensor,
    noise: Tensor,
    numbers: StateRandomNumbers,
) -> tuple[Tensor, Tensor]:
    """Compiled ``maths.series.simulation_smoother.simulate_states``, on the CPU.

    Raises:
        ImportError: numba is not installed.
    """
    n, d = layout.F.shape
    alpha = y.new_empty(len(y), n, d)
    eta = y.new_empty(len(y), n - 1, len(layout.noisy))
    used = (layout.F != 0).any(0).nonzero().flatten()
    values = layout.rows.numbers(G)
    arrays = (y, layout.seen, layout.F, used, layout.mean, layout.sd)
    chain_arrays = (scale, noise, numbers.first, numbers.states, numbers.observations, alpha, eta)
    rows = (whole(layout.rows.start), whole(layout.rows.columns))
    _loop()(
        *(x.contiguous().numpy() for x in arrays),
        *rows,
        values.contiguous().numpy(),
        whole(layout.noisy),
        *(x.contiguous().numpy() for x in chain_arrays),
    )
    return alpha, eta
