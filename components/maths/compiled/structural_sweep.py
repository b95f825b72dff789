"""Gibbs sweeps of a structural time series with Gaussian errors, compiled as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from components.maths.compiled import interweaving, simulation_smoother, spike_slab, stocks, whitening
from components.maths.compiled.interweaving import interweave
from components.maths.compiled.loops import Array, compile_loop
from components.maths.compiled.simulation_smoother import backwards, forwards, states
from components.maths.compiled.spike_slab import regression
from components.maths.compiled.stocks import fading, slice_one
from components.maths.compiled.whitening import columns_first, whiten
from components.maths.conditionals.truncated_gamma import variance_of


def scales(
    eta: Array, owner: Array, squares: Array, shape: Array, upper: Array, g: Array, total: Array, sigma: Array
) -> None:
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


def less(y: Array, rows: Array, beta: Array, left: Array) -> None:
    """What columns, here the rows of Xᵀ, leave of y; a coefficient that is 0 adds nothing."""
    for t in range(len(y)):
        left[t] = 0.0
    for j in range(len(beta)):
        if beta[j] != 0.0:
            slope, row = beta[j], rows[j]
            for t in range(len(y)):
                left[t] += row[t] * slope
    for t in range(len(y)):
        left[t] = y[t] - left[t]


def one_state(
    y: Array, seen: Array, F: Array, mean: float, sd: float, G: float, scale: float, noise: float,
    first: float, shocks: Array, errors: Array, gains: Array, scaled: Array, pulls: Array, alpha: Array, eta: Array,
) -> None:  # fmt: skip
    """``forwards``, ``backwards`` and ``states`` of a system with one state, number by number."""
    n = len(y)
    a, plus, P, h, w = mean, sd * first, sd * sd, noise * noise, scale * scale
    for t in range(n):
        if seen[t]:
            row = F[t, 0]
            v = y[t] - row * plus - noise * errors[t] - row * a
            M = P * row
            f = row * M + h
            scaled[t] = v / f
            gain = M / f
            gains[t, 0] = gain
            a += gain * v
            P -= M * M / f
        else:
            scaled[t] = 0.0
            gains[t, 0] = 0.0
        if t < n - 1:
            a = G * a
            plus = G * plus + scale * shocks[t, 0]
            P = G * (G * P) + w
    r = 0.0
    for t in range(n - 1, -1, -1):
        if t < n - 1:
            pulls[t, 0] = r
            r = G * r
        if seen[t]:
            r += F[t, 0] * (scaled[t] - gains[t, 0] * r)
    now = mean + sd * first + sd * sd * r
    alpha[0, 0] = now
    for t in range(n - 1):
        eta[t, 0] = scale * shocks[t, 0] + w * pulls[t, 0]
        now = G * now + eta[t, 0]
        alpha[t + 1, 0] = now


def _sweeps(
    y: Array, seen: Array, F: Array, used: Array, mean: Array, sd: Array, start: Array, columns: Array, values: Array,
    noisy: Array, owner: Array, X: Array, rows: Array, A: Array, omega: Array, logit: Array, squares: Array,
    shape: Array, upper: Array, first: Array, shocks: Array, errors: Array, u: Array, g: Array, z: Array,
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
            less(y, rows, beta[i], left)
            if d == 1 and len(noisy) == 1 and len(values) == 1:
                one_state(left, seen, F, mean[0], sd[0], values[0], sigma[i, 1], sigma[i, 0], first[s, i, 0],
                          shocks[s, i], errors[s, i], gains, scaled, pulls, alpha[i], eta)  # fmt: skip
            else:
                for t in range(n):
                    noise[t] = sigma[i, 0]
                for k in range(len(noisy)):
                    scale[k] = sigma[i, owner[k]]
                forwards(left, seen, F, used, mean, sd, start, columns, values, noisy, scale, noise,
                         first[s, i], shocks[s, i], errors[s, i], P, G, vectors, gains, scaled)  # fmt: skip
                backwards(seen, F, used, start, columns, values, noisy, vectors, gains, scaled, pulls)
                states(
                    mean,
                    sd,
                    start,
                    columns,
                    values,
                    noisy,
                    scale,
                    first[s, i],
                    shocks[s, i],
                    vectors,
                    pulls,
                    alpha[i],
                    eta,
                )
            scales(eta, owner, squares, shape, upper, g[s, i], total, sigma[i])
            c = moments(y, seen, F, used, X, alpha[i], b)
            sigma[i, 0] = regression(A, b, c, omega, logit, squares[0], shape[0], upper[0], u[s, i], u[s, i, p],
                                     g[s, i, :: S], z[s, i], gamma[i], beta[i], M, E, row, was)  # fmt: skip
            for j in range(S):
                kept[s, i, j] = sigma[i, j]
            for j in range(p):
                kept[s, i, S + j] = beta[i, j]


def grow(flow: Array, fades: Array, kept: float, s: Array, rows: Array, X: Array) -> None:
    """Columns whose flows are the rows of ``flow``, as rows [p, n] and as the first columns of X [n, …]."""
    p, n = flow.shape
    for j in range(p):
        own = flow[j]
        if fades[j]:
            fading(own, kept, s)
            own = s
        for t in range(n):
            rows[j, t] = own[t]
            X[t, j] = own[t]


def own_dynamics(
    alpha: Array, row: int, base: Array, terms: Array, scale: float, precision: float, mean: float, out: Array
) -> None:
    """What states [n, d] say of the one coefficient of a row of G: precision and pull of a normal, in ``out``."""
    square, product = 0.0, 0.0
    for t in range(len(alpha) - 1):
        own, known = 0.0, 0.0
        for i in range(len(base)):
            own += alpha[t, i] * terms[i]
            known += alpha[t, i] * base[i]
        square += own * own
        product += own * (alpha[t + 1, row] - known)
    weight = 1 / (scale * scale)
    out[0], out[1] = square * weight + precision, product * weight + precision * mean


def _whole(
    y: Array, seen: Array, F: Array, used: Array, mean: Array, sd: Array, start: Array, columns: Array, values: Array,
    changes: Array, noisy: Array, owner: Array, owned: Array, flow: Array, fades: Array, A: Array, omega: Array, logit: Array,
    df: Array, squares: Array, shape: Array, upper: Array, at: Array, base: Array, terms: Array, prior: Array,
    before: Array, columns_z: Array, first: Array, shocks: Array, errors: Array, u: Array, g: Array, z: Array, seeds: Array,
    after_z: Array, after_u: Array, sigma: Array, phi: Array, gamma: Array, beta: Array, alpha: Array,
) -> None:  # fmt: skip
    C, S = sigma.shape
    n, d = F.shape
    p, k = len(omega), len(noisy)
    rows, X, white = np.empty((p, n)), np.empty((n, p + 1)), np.empty((n, p + 1))
    s, left, noise, one = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    P, G, vectors, D = np.empty((d, d)), np.empty((d, d)), np.empty((4, d)), np.empty((n, d))
    leads, moved, gain, told = np.empty((d, p + 1)), np.empty((d, p + 1)), np.empty(d), np.empty(p + 1)
    gains, scaled, pulls, eta = np.empty((n, d)), np.empty(n), np.empty((n, k)), np.empty((n - 1, k))
    total, b, scale, own, G_values = np.empty(S), np.empty(p), np.empty(k), np.empty(2), np.empty(len(values))
    M, N, E, row = np.empty((p + 1, p + 1)), np.empty((p + 1, p + 1)), np.empty((p, p)), np.empty(p + 1)
    B, V, on, was = np.empty((p, p)), np.empty((n, p)), np.empty(p, dtype=np.int64), np.empty(p, dtype=np.bool_)
    X[:, p] = y
    fade = False
    for j in range(p):
        fade = fade or fades[j]
    for i in range(C):
        for m in range(len(values)):
            G_values[m] = values[m] + phi[i] * changes[m]
        for t in range(n):
            noise[t] = sigma[i, 0]
        for m in range(k):
            scale[m] = sigma[i, owner[m]]
        grow(flow, fades, phi[i], s, rows, X)
        if p:
            whiten(X, seen, F, used, mean, sd, start, columns, G_values, noisy, scale, noise,
                   P, G, leads, moved, gain, told, white)  # fmt: skip
            columns_first(white, omega, logit, sigma[i, 0], before[i], before[i, p], columns_z[i], gamma[i], beta[i],
                          M, E, row, N, B, b)  # fmt: skip
        less(y, rows, beta[i], left)
        forwards(left, seen, F, used, mean, sd, start, columns, G_values, noisy, scale, noise,
                 first[i], shocks[i], errors[i], P, G, vectors, gains, scaled)  # fmt: skip
        backwards(seen, F, used, start, columns, G_values, noisy, vectors, gains, scaled, pulls)
        states(mean, sd, start, columns, G_values, noisy, scale, first[i], shocks[i], vectors, pulls, alpha[i], eta)
        scales(eta, owner, squares, shape, upper, g[i], total, sigma[i])
        if at[0] >= 0:
            own_dynamics(alpha[i], at[0], base, terms, sigma[i, at[1]], prior[0], prior[1], own)
            for t in range(n):
                one[t], left[t] = 0.0, 0.0
                if seen[t]:
                    answer = 0.0
                    for m in used:
                        answer += F[t, m] * alpha[i, t, m]
                    one[t], left[t] = 1.0, y[t] - answer
            for j in range(p if not fade else 0):
                was[j] = False
            phi[i] = slice_one(rows, flow, fades, one, left, omega, gamma[i] if fade else was, sigma[i, 0], own[0], own[1],
                               phi[i], prior[2], prior[3], seeds[i], V, B, b, s, on)  # fmt: skip
            for m in range(len(values)):
                G_values[m] = values[m] + phi[i] * changes[m]
            if fade:
                grow(flow, fades, phi[i], s, rows, X)
        c = moments(y, seen, F, used, X, alpha[i], b)
        for m in range(p):
            for j in range(p):
                B[m, j] = A[m, j]
        if fade:
            for m in range(p):
                for j in range(m + 1):
                    B[m, j] = 0.0
            for t in range(n):
                if seen[t]:
                    for m in range(p):
                        for j in range(m + 1):
                            B[m, j] += X[t, m] * X[t, j]
            for m in range(p):
                for j in range(m):
                    B[j, m] = B[m, j]
        sigma[i, 0] = regression(B, b, c, omega, logit, squares[0], shape[0], upper[0], u[i], u[i, p],
                                 g[i, ::S], z[i], gamma[i], beta[i], M, E, row, was)  # fmt: skip
        if k:
            less(y, rows, beta[i], left)
            for t in range(n):
                one[t] = 0.0
                if seen[t]:
                    one[t] = 1 / (sigma[i, 0] * sigma[i, 0])
                else:
                    left[t] = 0.0
            interweave(F, used, start, columns, G_values, owned, df, squares, upper, left, one, after_z[i], after_u[i],
                       sigma[i], alpha[i], D, gain)  # fmt: skip


@cache
def whole() -> Callable[..., None]:
    """One sweep with all its draws, of dynamics with one unknown coefficient at most.

    Raises:
        ImportError: numba is not installed.
    """
    others = (simulation_smoother, spike_slab, stocks, whitening, interweaving)
    parts = [part for module in others for part in module.compilable]
    return compile_loop(_whole, tuple(dict.fromkeys((*parts, less, scales, moments, grow, own_dynamics))))


@cache
def sweeps() -> Callable[..., None]:
    """The compiled loop.

    Raises:
        ImportError: numba is not installed.
    """
    others = (*simulation_smoother.compilable, *spike_slab.compilable)
    parts: tuple[Callable[..., Any], ...] = (*others, less, one_state, scales, moments)
    return compile_loop(_sweeps, tuple(dict.fromkeys(parts)))
