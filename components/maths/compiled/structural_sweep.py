"""Gibbs sweeps of a structural time series with Gaussian errors and known dynamics, compiled as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from components.maths.compiled import simulation_smoother, spike_slab
from components.maths.compiled.loops import Array, compiled
from components.maths.compiled.simulation_smoother import backwards, forwards, states
from components.maths.compiled.spike_slab import regression
from components.maths.truncated_gamma import variance_of


def scales(eta: Array, owner: Array, squares: Array, shape: Array, upper: Array, g: Array, total: Array, sigma: Array) -> None:
    """σ_j of the noise of states, j ≥ 1, each given its own noise η [n − 1, k]; σ_0 is left alone."""
    for j in range(1, len(sigma)):
        total[j] = 0.0
    for t in range(len(eta)):
        for k in range(len(owner)):
            total[owner[k]] += eta[t, k] * eta[t, k]
    for j in range(1, len(sigma)):
        sigma[j] = math.sqrt(variance_of(g[j], shape[j], 0.5 * (squares[j] + total[j]), upper[j]))


def moments(y: Array, seen: Array, F: Array, used: Array, X: Array, alpha: Array, b: Array) -> float:
    """yᵀy, and b = Xᵀy, of what states leave of y."""
    c = 0.0
    for j in range(len(b)):
        b[j] = 0.0
    for t in range(len(y)):
        if seen[t]:
            told = 0.0
            for i in used:
                told += F[t, i] * alpha[t, i]
            e = y[t] - told
            for j in range(len(b)):
                b[j] += X[t, j] * e
            c += e * e
    return c


def less(y: Array, X: Array, beta: Array, left: Array) -> None:
    """What columns leave of y."""
    for t in range(len(y)):
        told = 0.0
        for j in range(len(beta)):
            told += X[t, j] * beta[j]
        left[t] = y[t] - told


def _sweeps(
    y: Array, seen: Array, F: Array, used: Array, mean: Array, sd: Array, start: Array, columns: Array, values: Array,
    noisy: Array, owner: Array, X: Array, A: Array, omega: Array, logit: Array, squares: Array, shape: Array, upper: Array,
    first: Array, shocks: Array, errors: Array, u: Array, g: Array, z: Array,
    sigma: Array, gamma: Array, beta: Array, alpha: Array, kept: Array,
) -> None:  # fmt: skip
    K, C, S = g.shape[0], g.shape[1], len(squares)
    n, d = F.shape
    p = len(omega)
    P, G, vectors = np.empty((d, d)), np.empty((d, d)), np.empty((4, d))
    gains, scaled, pulls, eta = np.empty((n, d)), np.empty(n), np.empty((n, len(noisy))), np.empty((n - 1, len(noisy)))
    left, noise, total, b, scale = np.empty(n), np.empty(n), np.empty(S), np.empty(p), np.empty(len(noisy))
    M, E, row, was = np.empty((p + 1, p + 1)), np.empty((p, p)), np.empty(p + 1), np.empty(p, dtype=np.bool_)
    for i in range(C):
        for s in range(K):
            less(y, X, beta[i], left)
            for t in range(n):
                noise[t] = sigma[i, 0]
            for k in range(len(noisy)):
                scale[k] = sigma[i, owner[k]]
            forwards(left, seen, F, used, mean, sd, start, columns, values, noisy, scale, noise,
                     first[s, i], shocks[s, i], errors[s, i], P, G, vectors, gains, scaled)  # fmt: skip
            backwards(seen, F, used, start, columns, values, noisy, vectors, gains, scaled, pulls)
            states(mean, sd, start, columns, values, noisy, scale, first[s, i], shocks[s, i], vectors, pulls, alpha[i], eta)
            scales(eta, owner, squares, shape, upper, g[s, i], total, sigma[i])
            c = moments(y, seen, F, used, X, alpha[i], b)
            sigma[i, 0] = regression(A, b, c, omega, logit, squares[0], shape[0], upper[0], u[s, i], u[s, i, p],
                                     g[s, i, :: S], z[s, i], gamma[i], beta[i], M, E, row, was)  # fmt: skip
            for j in range(S):
                kept[s, i, j] = sigma[i, j]
            for j in range(p):
                kept[s, i, S + j] = beta[i, j]


@cache
def sweeps() -> Callable[..., None]:
    """The compiled loop.

    Raises:
        ImportError: numba is not installed.
    """
    parts = dict.fromkeys((*simulation_smoother.compilable, *spike_slab.compilable, less, scales, moments))
    return compiled(_sweeps, tuple(parts))
