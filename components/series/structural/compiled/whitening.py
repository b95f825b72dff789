"""Compiled draws of columns, with the states of a series integrated out.

    V = Y − F A,  f = F P Fᵀ + h,  K = P Fᵀ/f,  A ← G(A + K V),  P ← G(P − K f Kᵀ)Gᵀ + W,   t = 1 … n

Y: the columns X, then y, the only one with the states' mean.  All of this is linear, so V/√f of y
is V/√f of X times β plus white noise: p(y | β) with the states integrated out.

Source: Durbin and Koopman (2012), section 6.2.3; Liu (1994).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array
from components.series.structural.compiled.memory import clear, clear_rows, copy_rows
from components.series.structural.compiled.simulation_smoother import (
    StateWork,
    System,
    SystemMotion,
    init_covariance,
    predict_covariance,
    predict_variance,
)
from components.series.structural.compiled.spike_slab import (
    Slab,
    SlabRandomNumbers,
    SlabWork,
    draw_coefficients,
    init_pivots,
    scan_indicators,
)


class WhiteWork(NamedTuple):
    """Work arrays of a filter of q columns; a draw of the states has its own."""

    A: Array  # means of states, one column per series [d, q]
    moved: Array  # [d, q]
    left: Array  # V of one time [q]
    white: Array  # V/√f [n, q], 0 at missing times
    gram: Array  # [q, q]


def white_work(system: System, q: int) -> WhiteWork:
    """Allocate the work arrays."""
    n, d = system.F.shape
    return WhiteWork(
        A=np.empty((d, q)),
        moved=np.empty((d, q)),
        left=np.empty(q),
        white=np.empty((n, q)),
        gram=np.empty((q, q)),
    )


def whiten_observation(
    row: Array, t: int, system: System, noise: float, states: StateWork, work: WhiteWork
) -> float:
    """Compute V/√f of one time, and A given V/√f; return 1/f."""
    A = work.A
    left = work.left
    q = len(row)
    f = predict_variance(system, t, noise, states.P, states.M)
    width = math.sqrt(f)
    clear(left)
    for i in system.used:
        loading = system.F[t, i]
        for c in range(q):
            left[c] += A[i, c] * loading
    for c in range(q):
        left[c] = row[c] - left[c]
        work.white[t, c] = left[c] / width
    for i in range(len(A)):
        gain = states.M[i] / f
        for c in range(q):
            A[i, c] += gain * left[c]
    return 1 / f


def move_columns(system: System, values: Array, work: WhiteWork) -> None:
    """A ← G A."""
    A = work.A
    moved = work.moved
    q = A.shape[1]
    clear_rows(moved)
    for i in range(len(A)):
        for k in range(system.start[i], system.start[i + 1]):
            value = values[k]
            column = system.columns[k]
            for c in range(q):
                moved[i, c] += value * A[column, c]
    copy_rows(moved, A)


def whiten(
    Y: Array, system: System, motion: SystemMotion, states: StateWork, work: WhiteWork
) -> float:
    """V/√f of columns Y [n, q]; overwrites the work arrays of a draw of the states, and returns −½
    Σ_t log f_t."""
    n, q = Y.shape
    total = 0.0
    clear_rows(work.A)
    for i in range(len(work.A)):
        work.A[i, q - 1] = system.mean[i]
    init_covariance(system.sd, states.P)
    for t in range(n):
        if system.seen[t]:
            weight = whiten_observation(Y[t], t, system, motion.noise[t], states, work)
            total += math.log(weight)
        else:
            weight = 0.0
            clear(states.M)
            clear(work.white[t])
        if t < n - 1:
            move_columns(system, motion.values, work)
            predict_covariance(system, motion, weight, states.P, states.M, states.moved, states.GP)
    return total / 2


def multiply_columns(white: Array, unit: float, gram: Array) -> None:
    """The lower half of ``unit`` times WᵀW [q, q] for columns W [n, q]."""
    n, q = white.shape
    clear_rows(gram)
    for t in range(n):
        row = white[t]
        for i in range(q):
            gram_row = gram[i]
            for j in range(i + 1):
                gram_row[j] += row[i] * row[j]
    for i in range(q):
        for j in range(i + 1):
            gram[i, j] *= unit


def pivot_columns(
    white: WhiteWork, slab: Slab, sigma: float, gamma: Array, work: SlabWork
) -> float:
    """Sweep M and E of whitened columns, in units of σ, by γ; return ½ log |Ω_γγ| |V_γ|."""
    p = len(gamma)
    multiply_columns(white.white, sigma * sigma, white.gram)
    for i in range(p):
        work.b[i] = white.gram[p, i]
        for j in range(i + 1):
            work.A[i, j] = white.gram[i, j]
            work.A[j, i] = white.gram[i, j]
    return init_pivots(white.gram[p, p], slab, gamma, work)


def log_columns(white: WhiteWork, slab: Slab, sigma: float, gamma: Array, work: SlabWork) -> float:
    """log p(y | γ, σ, φ) + ½ Σ_t log f_t up to a constant, with the states and β integrated out."""
    half = pivot_columns(white, slab, sigma, gamma, work)
    return half - work.M[-1, -1] / (2 * sigma * sigma)


def draw_columns(
    white: WhiteWork,
    slab: Slab,
    sigma: float,
    drawn: SlabRandomNumbers,
    gamma: Array,
    beta: Array,
    work: SlabWork,
) -> None:
    """γ after one scan and β given σ, from whitened columns, with the states integrated out."""
    pivot_columns(white, slab, sigma, gamma, work)
    scan_indicators(slab, sigma, drawn, gamma, work)
    draw_coefficients(sigma, drawn.z, gamma, beta, work)
