"""Draws of a spike-and-slab regression, compiled: the bits of ``maths.conditionals.spike_slab``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.series.conditionals import truncated_gamma
from components.series.conditionals.spike_slab import SlabRandomNumbers, SpikeSlab
from components.series.conditionals.truncated_gamma import variance_from_gamma


def sweep(M: Array, k: int, within: bool, row: Array) -> None:
    """M with column k brought among the regressors, or taken from among them where it is
    ``within``."""
    q = len(M)
    pivot = M[k, k]
    for i in range(q):
        row[i] = M[k, i]
    for i in range(q):
        for j in range(q):
            M[i, j] -= row[i] * row[j] / pivot
    for i in range(q):
        edge = -(row[i] / pivot) if within else row[i] / pivot
        M[k, i] = edge
        M[i, k] = edge
    M[k, k] = -(1 / pivot)


def is_included(
    M: Array, E: Array, k: int, within: bool, logit: float, a: float, sigma: float, u: float
) -> bool:
    """True if the draw includes column k.

    σ is ``sigma``, or is summed out if that is 0.
    """
    p = len(E)
    d = M[k, k]
    e = E[k, k]
    h = M[k, p]
    S = M[p, p]
    inside = S
    outside = S
    if within:
        d = -(1 / d)
        e = -(1 / e)
        outside = S + h * h * d
    else:
        inside = S - h * h / d
    misfit_change = (
        a * math.log(inside / outside) if sigma == 0.0 else (inside - outside) / (2 * sigma * sigma)
    )
    odds = logit + 0.5 * math.log(e / d) - misfit_change
    return u < 1 / (math.exp(-odds) + 1)


def init_sweep(
    A: Array, b: Array, corner: float, omega: Array, gamma: Array, M: Array, E: Array, row: Array
) -> None:
    """M and E, swept by γ."""
    p = len(b)
    for i in range(p):
        for j in range(p):
            M[i, j] = A[i, j] + omega[i, j]
            E[i, j] = omega[i, j]
        M[i, p] = b[i]
        M[p, i] = b[i]
    M[p, p] = corner
    for k in range(p):
        if gamma[k]:
            sweep(M, k, False, row)
            sweep(E, k, False, row[:p])


def regression(
    A: Array,
    b: Array,
    c: float,
    omega: Array,
    logit: Array,
    squares: float,
    a: float,
    upper: float,
    u: Array,
    turn: float,
    g: Array,
    z: Array,
    gamma: Array,
    beta: Array,
    M: Array,
    E: Array,
    row: Array,
    was: Array,
) -> float:
    """σ; γ and β are left in their arrays."""
    p = len(b)
    init_sweep(A, b, c + squares, omega, gamma, M, E, row)
    for k in range(p):
        was[k] = gamma[k]
    scan(M, E, logit, a, 0.0, u, turn, gamma, row)
    if 0.5 * M[p, p] / g[1] > upper * upper:
        for k in range(p):
            gamma[k] = was[k]
        init_sweep(A, b, c + squares, omega, gamma, M, E, row)
    sigma = math.sqrt(variance_from_gamma(g[0], a, 0.5 * M[p, p], upper))
    coefficients(M, sigma, z, gamma, beta, row)
    return sigma


def scan(
    M: Array,
    E: Array,
    logit: Array,
    a: float,
    sigma: float,
    u: Array,
    turn: float,
    gamma: Array,
    row: Array,
) -> None:
    """γ after one scan, and M and E swept by it."""
    p = len(gamma)
    for j in range(p):
        k = j if turn < 0.5 else p - 1 - j
        within = gamma[k]
        gamma[k] = is_included(M, E, k, within, logit[k], a, sigma, u[k])
        if gamma[k] != within:
            sweep(M, k, within, row)
            sweep(E, k, within, row[:p])


def coefficients(M: Array, sigma: float, z: Array, gamma: Array, beta: Array, row: Array) -> None:
    """β, 0 where γ is; M is swept by γ, and is no more of use."""
    p = len(gamma)
    for j in range(p):
        beta[j] = 0.0
    for j in range(p):
        if gamma[j]:
            pivot = -M[j, j]
            step = sigma * math.sqrt(pivot) * z[j]
            beta[j] = M[j, p] + step
            for i in range(p):
                row[i] = -M[j, i]
            for i in range(j + 1, p):
                M[i, p] += row[i] / pivot * step
                for k in range(j + 1, p):
                    M[i, k] += row[i] * row[k] / pivot


def update_given_sigma(
    A: Array,
    b: Array,
    omega: Array,
    logit: Array,
    sigma: float,
    u: Array,
    turn: float,
    z: Array,
    gamma: Array,
    beta: Array,
    M: Array,
    E: Array,
    row: Array,
) -> None:
    """γ and β of a known σ, left in their arrays."""
    init_sweep(A, b, 0.0, omega, gamma, M, E, row)
    scan(M, E, logit, 0.0, sigma, u, turn, gamma, row)
    coefficients(M, sigma, z, gamma, beta, row)


compilable = (
    *truncated_gamma.compilable,
    sweep,
    is_included,
    init_sweep,
    scan,
    coefficients,
    regression,
)


def _chains(
    A: Array,
    b: Array,
    c: Array,
    omega: Array,
    logit: Array,
    squares: float,
    a: float,
    upper: float,
    u: Array,
    turn: Array,
    g: Array,
    z: Array,
    gamma: Array,
    sigma: Array,
    beta: Array,
) -> None:
    C, p = b.shape
    M = np.empty((p + 1, p + 1))
    E = np.empty((p, p))
    row = np.empty(p + 1)
    was = np.empty(p, dtype=np.bool_)
    for i in range(C):
        sigma[i] = regression(
            A[i],
            b[i],
            c[i],
            omega,
            logit,
            squares,
            a,
            upper,
            u[i],
            turn[i],
            g[i],
            z[i],
            gamma[i],
            beta[i],
            M,
            E,
            row,
            was,
        )


@cache
def _loop() -> Callable[..., None]:
    return compile_loop(_chains, compilable)


def draw(
    prior: SpikeSlab,
    A: Tensor,
    b: Tensor,
    c: Tensor,
    n: int,
    gamma: Tensor,
    numbers: SlabRandomNumbers,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compiled ``maths.conditionals.spike_slab.draw``, on the CPU.

    Raises:
        ImportError: numba is not installed.
    """
    C, p = b.shape
    gamma = gamma.clone()
    sigma = b.new_empty(C)
    beta = b.new_empty(C, p)
    arrays = (A.expand(C, p, p), b, c, prior.precision, prior.logit)
    chain_arrays = (numbers.u, numbers.turn, numbers.g, numbers.z, gamma, sigma, beta)
    _loop()(
        *(x.contiguous().numpy() for x in arrays),
        prior.squares,
        prior.shape(n),
        prior.upper,
        *(x.contiguous().numpy() for x in chain_arrays),
    )
    return gamma, sigma, beta
