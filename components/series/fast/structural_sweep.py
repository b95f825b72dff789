"""Gibbs sweeps of a structural time series with Gaussian errors, compiled as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from components.maths.compiled.loops import Array, compile_loop
from components.series.conditionals.truncated_gamma import variance_from_gamma
from components.series.fast import interweaving, simulation_smoother, spike_slab, stocks, whitening
from components.series.fast.interweaving import interweave
from components.series.fast.simulation_smoother import backwards, forwards, states
from components.series.fast.spike_slab import regression
from components.series.fast.stocks import fading, slice_one
from components.series.fast.whitening import columns_first, whiten


def scales(
    eta: Array,
    owner: Array,
    squares: Array,
    shape: Array,
    upper: Array,
    g: Array,
    total: Array,
    sigma: Array,
) -> None:
    """Draw σ_j of state noise, j ≥ 1, each given its own noise η [n − 1, k]; σ_0 is unchanged."""
    for j in range(1, len(sigma)):
        total[j] = 0.0
    for t in range(len(eta)):
        for k in range(len(owner)):
            total[owner[k]] += eta[t, k] * eta[t, k]
    for j in range(1, len(sigma)):
        sigma[j] = math.sqrt(
            variance_from_gamma(g[j], shape[j], 0.5 * (squares[j] + total[j]), upper[j])
        )


def moments(
    y: Array, seen: Array, F: Array, used: Array, X: Array, alpha: Array, b: Array
) -> float:
    """yᵀy, and b = Xᵀy, for the residual y after the states are subtracted."""
    c = 0.0
    for j in range(len(b)):
        b[j] = 0.0
    for t in range(len(y)):
        if seen[t]:
            signal = 0.0
            for i in used:
                signal += F[t, i] * alpha[t, i]
            e = y[t] - signal
            for j in range(len(b)):
                b[j] += X[t, j] * e
            c += e * e
    return c


def less(y: Array, rows: Array, beta: Array, left: Array) -> None:
    """Subtract the columns, here the rows of Xᵀ, from y; zero coefficients are skipped."""
    for t in range(len(y)):
        left[t] = 0.0
    for j in range(len(beta)):
        if beta[j] != 0.0:
            slope = beta[j]
            row = rows[j]
            for t in range(len(y)):
                left[t] += row[t] * slope
    for t in range(len(y)):
        left[t] = y[t] - left[t]


def sample_single_state(
    y: Array,
    seen: Array,
    F: Array,
    mean: float,
    sd: float,
    G: float,
    scale: float,
    noise: float,
    first: float,
    shocks: Array,
    errors: Array,
    gains: Array,
    scaled: Array,
    pulls: Array,
    alpha: Array,
    eta: Array,
) -> None:
    """``forwards``, ``backwards`` and ``states`` of a system with one state, number by number."""
    n = len(y)
    a = mean
    plus = sd * first
    P = sd * sd
    h = noise * noise
    w = scale * scale
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
    owner: Array,
    X: Array,
    rows: Array,
    A: Array,
    omega: Array,
    logit: Array,
    squares: Array,
    shape: Array,
    upper: Array,
    first: Array,
    shocks: Array,
    errors: Array,
    u: Array,
    g: Array,
    z: Array,
    sigma: Array,
    gamma: Array,
    beta: Array,
    alpha: Array,
    kept: Array,
) -> None:
    K = g.shape[0]
    C = g.shape[1]
    S = len(squares)
    n, d = F.shape
    p = len(omega)
    P = np.empty((d, d))
    G = np.empty((d, d))
    vectors = np.empty((4, d))
    gains = np.empty((n, d))
    scaled = np.empty(n)
    pulls = np.empty((n, len(noisy)))
    eta = np.empty((n - 1, len(noisy)))
    residuals = np.empty(n)
    noise = np.empty(n)
    total = np.empty(S)
    b = np.empty(p)
    scale = np.empty(len(noisy))
    M = np.empty((p + 1, p + 1))
    E = np.empty((p, p))
    row = np.empty(p + 1)
    was = np.empty(p, dtype=np.bool_)
    for i in range(C):
        for s in range(K):
            less(y, rows, beta[i], residuals)
            if d == 1 and len(noisy) == 1 and len(values) == 1:
                sample_single_state(
                    residuals,
                    seen,
                    F,
                    mean[0],
                    sd[0],
                    values[0],
                    sigma[i, 1],
                    sigma[i, 0],
                    first[s, i, 0],
                    shocks[s, i],
                    errors[s, i],
                    gains,
                    scaled,
                    pulls,
                    alpha[i],
                    eta,
                )
            else:
                for t in range(n):
                    noise[t] = sigma[i, 0]
                for k in range(len(noisy)):
                    scale[k] = sigma[i, owner[k]]
                forwards(
                    residuals,
                    seen,
                    F,
                    used,
                    mean,
                    sd,
                    start,
                    columns,
                    values,
                    noisy,
                    scale,
                    noise,
                    first[s, i],
                    shocks[s, i],
                    errors[s, i],
                    P,
                    G,
                    vectors,
                    gains,
                    scaled,
                )
                backwards(
                    seen, F, used, start, columns, values, noisy, vectors, gains, scaled, pulls
                )
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
            sigma[i, 0] = regression(
                A,
                b,
                c,
                omega,
                logit,
                squares[0],
                shape[0],
                upper[0],
                u[s, i],
                u[s, i, p],
                g[s, i, ::S],
                z[s, i],
                gamma[i],
                beta[i],
                M,
                E,
                row,
                was,
            )
            for j in range(S):
                kept[s, i, j] = sigma[i, j]
            for j in range(p):
                kept[s, i, S + j] = beta[i, j]


def grow(flow: Array, fades: Array, kept: float, s: Array, rows: Array, X: Array) -> None:
    """Build columns from their flows in ``flow``: rows [p, n], and first columns of X [n, …]."""
    p, n = flow.shape
    for j in range(p):
        column = flow[j]
        if fades[j]:
            fading(column, kept, s)
            column = s
        for t in range(n):
            rows[j, t] = column[t]
            X[t, j] = column[t]


def dynamics_natural_parameters(
    alpha: Array,
    row: int,
    base: Array,
    terms: Array,
    scale: float,
    precision: float,
    mean: float,
    out: Array,
) -> None:
    """Natural parameters, in ``out``, of the normal for one coefficient of a row of G.

    They are precision and pull, given states [n, d].
    """
    square = 0.0
    product = 0.0
    for t in range(len(alpha) - 1):
        regressor = 0.0
        baseline = 0.0
        for i in range(len(base)):
            regressor += alpha[t, i] * terms[i]
            baseline += alpha[t, i] * base[i]
        square += regressor * regressor
        product += regressor * (alpha[t + 1, row] - baseline)
    weight = 1 / (scale * scale)
    out[0] = square * weight + precision
    out[1] = product * weight + precision * mean


def _whole(
    y: Array,
    seen: Array,
    F: Array,
    used: Array,
    mean: Array,
    sd: Array,
    start: Array,
    columns: Array,
    values: Array,
    changes: Array,
    noisy: Array,
    owner: Array,
    owned: Array,
    flow: Array,
    fades: Array,
    A: Array,
    omega: Array,
    logit: Array,
    df: Array,
    squares: Array,
    shape: Array,
    upper: Array,
    at: Array,
    base: Array,
    terms: Array,
    prior: Array,
    before: Array,
    columns_z: Array,
    first: Array,
    shocks: Array,
    errors: Array,
    u: Array,
    g: Array,
    z: Array,
    seeds: Array,
    after_z: Array,
    after_u: Array,
    sigma: Array,
    phi: Array,
    gamma: Array,
    beta: Array,
    alpha: Array,
) -> None:
    C, S = sigma.shape
    n, d = F.shape
    p = len(omega)
    k = len(noisy)
    rows = np.empty((p, n))
    X = np.empty((n, p + 1))
    white = np.empty((n, p + 1))
    s = np.empty(n)
    residuals = np.empty(n)
    noise = np.empty(n)
    one = np.empty(n)
    P = np.empty((d, d))
    G = np.empty((d, d))
    vectors = np.empty((4, d))
    D = np.empty((n, d))
    leads = np.empty((d, p + 1))
    moved = np.empty((d, p + 1))
    gain = np.empty(d)
    predicted = np.empty(p + 1)
    gains = np.empty((n, d))
    scaled = np.empty(n)
    pulls = np.empty((n, k))
    eta = np.empty((n - 1, k))
    total = np.empty(S)
    b = np.empty(p)
    scale = np.empty(k)
    dynamics = np.empty(2)
    G_values = np.empty(len(values))
    M = np.empty((p + 1, p + 1))
    N = np.empty((p + 1, p + 1))
    E = np.empty((p, p))
    row = np.empty(p + 1)
    B = np.empty((p, p))
    V = np.empty((n, p))
    on = np.empty(p, dtype=np.int64)
    was = np.empty(p, dtype=np.bool_)
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
            whiten(
                X,
                seen,
                F,
                used,
                mean,
                sd,
                start,
                columns,
                G_values,
                noisy,
                scale,
                noise,
                P,
                G,
                leads,
                moved,
                gain,
                predicted,
                white,
            )
            columns_first(
                white,
                omega,
                logit,
                sigma[i, 0],
                before[i],
                before[i, p],
                columns_z[i],
                gamma[i],
                beta[i],
                M,
                E,
                row,
                N,
                B,
                b,
            )
        less(y, rows, beta[i], residuals)
        forwards(
            residuals,
            seen,
            F,
            used,
            mean,
            sd,
            start,
            columns,
            G_values,
            noisy,
            scale,
            noise,
            first[i],
            shocks[i],
            errors[i],
            P,
            G,
            vectors,
            gains,
            scaled,
        )
        backwards(seen, F, used, start, columns, G_values, noisy, vectors, gains, scaled, pulls)
        states(
            mean,
            sd,
            start,
            columns,
            G_values,
            noisy,
            scale,
            first[i],
            shocks[i],
            vectors,
            pulls,
            alpha[i],
            eta,
        )
        scales(eta, owner, squares, shape, upper, g[i], total, sigma[i])
        if at[0] >= 0:
            dynamics_natural_parameters(
                alpha[i], at[0], base, terms, sigma[i, at[1]], prior[0], prior[1], dynamics
            )
            for t in range(n):
                one[t] = 0.0
                residuals[t] = 0.0
                if seen[t]:
                    answer = 0.0
                    for m in used:
                        answer += F[t, m] * alpha[i, t, m]
                    one[t] = 1.0
                    residuals[t] = y[t] - answer
            for j in range(p if not fade else 0):
                was[j] = False
            phi[i] = slice_one(
                rows,
                flow,
                fades,
                one,
                residuals,
                omega,
                gamma[i] if fade else was,
                sigma[i, 0],
                dynamics[0],
                dynamics[1],
                phi[i],
                prior[2],
                prior[3],
                seeds[i],
                V,
                B,
                b,
                s,
                on,
            )
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
        sigma[i, 0] = regression(
            B,
            b,
            c,
            omega,
            logit,
            squares[0],
            shape[0],
            upper[0],
            u[i],
            u[i, p],
            g[i, ::S],
            z[i],
            gamma[i],
            beta[i],
            M,
            E,
            row,
            was,
        )
        if k:
            less(y, rows, beta[i], residuals)
            for t in range(n):
                one[t] = 0.0
                if seen[t]:
                    one[t] = 1 / (sigma[i, 0] * sigma[i, 0])
                else:
                    residuals[t] = 0.0
            interweave(
                F,
                used,
                start,
                columns,
                G_values,
                owned,
                df,
                squares,
                upper,
                residuals,
                one,
                after_z[i],
                after_u[i],
                sigma[i],
                alpha[i],
                D,
                gain,
            )


@cache
def whole() -> Callable[..., None]:
    """One sweep with all its draws, of dynamics with one unknown coefficient at most.

    Raises:
        ImportError: numba is not installed.
    """
    others = (simulation_smoother, spike_slab, stocks, whitening, interweaving)
    parts = [part for module in others for part in module.compilable]
    return compile_loop(
        _whole,
        tuple(dict.fromkeys((*parts, less, scales, moments, grow, dynamics_natural_parameters))),
    )


@cache
def sweeps() -> Callable[..., None]:
    """The compiled loop.

    Raises:
        ImportError: numba is not installed.
    """
    others = (*simulation_smoother.compilable, *spike_slab.compilable)
    parts: tuple[Callable[..., Any], ...] = (*others, less, sample_single_state, scales, moments)
    return compile_loop(_sweeps, tuple(dict.fromkeys(parts)))
