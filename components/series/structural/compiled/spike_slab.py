"""Compiled regression with variable selection: a spike at 0 and a normal slab.

    γ_i ~ Bernoulli(π_i),   σ² ~ InvGamma(ν/2, ν s²/2) given σ ≤ upper
    β_γ | γ, σ² ~ N(0, σ² Ω_γγ⁻¹),   y | β, σ² ~ N(Xβ, σ² Λ⁻¹)

β and σ² are integrated out in the draw of γ.  With A = XᵀΛX, b = XᵀΛy, V_γ = (A_γγ + Ω_γγ)⁻¹, β̂_γ
= V_γ b_γ

    p(γ | y) ∝ p(γ) (|Ω_γγ| |V_γ|)^½ S_γ^{−(ν+n)/2},   S_γ = ν s² + yᵀΛy − b_γᵀ β̂_γ

and for known σ p(γ | y, σ) ∝ p(γ) (|Ω_γγ| |V_γ|)^½ exp(b_γᵀ β̂_γ/(2 σ²)).

Matrices M = [A + Ω, b; bᵀ, ν s² + yᵀΛy] and E = Ω are swept by γ: M then holds −V_γ, β̂_γ and S_γ,
and for the excluded columns their residuals on the included ones.

Source: George and McCulloch (1997), section 4; Scott and Varian (2014), section 3.3; Goodnight
(1979)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array
from components.series.structural.compiled.memory import clear, copy
from components.series.structural.compiled.truncated_gamma import variance_from_gamma


class Slab(NamedTuple):
    """The prior of p coefficients and of the variance."""

    omega: Array  # Ω [p, p]
    logit: Array  # log π/(1 − π) [p], infinite for columns that are always in or out
    squares: float  # ν s²
    shape: float  # (ν + n)/2, of σ² | γ, y
    upper: float  # of σ; may be inf


class SlabRandomNumbers(NamedTuple):
    """Random numbers of one draw."""

    u: Array  # uniform [p + 1]; if the last is below ½, columns are visited in ascending order
    z: Array  # normal [p]


class SlabWork(NamedTuple):
    """Work arrays of one draw."""

    A: Array  # XᵀΛX [p, p]
    b: Array  # XᵀΛy [p]
    M: Array  # [p + 1, p + 1]
    E: Array  # [p, p]
    row: Array  # [p + 1]
    before: Array  # γ before a scan [p] bool


def slab_work(p: int) -> SlabWork:
    """Allocate the work arrays."""
    A = np.empty((p, p))
    E = np.empty((p, p))
    M = np.empty((p + 1, p + 1))
    return SlabWork(A, np.empty(p), M, E, np.empty(p + 1), np.empty(p, dtype=np.bool_))


def pivot(M: Array, k: int, within: bool, row: Array) -> None:
    """Add column k to the regressors of M, or remove it if it is among them (``within``)."""
    q = len(M)
    inverse = 1 / M[k, k]
    for i in range(q):
        row[i] = M[k, i]
    for i in range(q):
        scaled = row[i] * inverse
        for j in range(q):
            M[i, j] -= scaled * row[j]
    sign = -inverse if within else inverse
    for i in range(q):
        M[k, i] = row[i] * sign
        M[i, k] = row[i] * sign
    M[k, k] = -inverse


def log_odds(M: Array, E: Array, k: int, within: bool, slab: Slab, sigma: float) -> float:
    """log p(γ_k = 1 | γ_−k, y)/p(γ_k = 0 | γ_−k, y); if ``sigma`` is 0, σ is integrated out.

    With d, e the residuals of column k in M and E:  log π_k/(1 − π_k) + ½ log e/d − a log S_1/S_0,
    and given σ the last term is (S_0 − S_1)/(2 σ²)."""
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
    gap = inside - outside
    fit = slab.shape * math.log(inside / outside) if sigma == 0.0 else gap / (2 * sigma * sigma)
    return slab.logit[k] + 0.5 * math.log(e / d) - fit


def init_pivots(corner: float, slab: Slab, gamma: Array, work: SlabWork) -> float:
    """M and E, swept by γ; returns ½ log |Ω_γγ| |V_γ|."""
    M = work.M
    E = work.E
    p = len(gamma)
    for i in range(p):
        for j in range(p):
            M[i, j] = work.A[i, j] + slab.omega[i, j]
            E[i, j] = slab.omega[i, j]
        M[i, p] = work.b[i]
        M[p, i] = work.b[i]
    M[p, p] = corner
    total = 0.0
    for k in range(p):
        if gamma[k]:
            total += math.log(E[k, k] / M[k, k])
            pivot(M, k, False, work.row)
            pivot(E, k, False, work.row[:p])
    return total / 2


def scan_indicators(
    slab: Slab, sigma: float, drawn: SlabRandomNumbers, gamma: Array, work: SlabWork
) -> None:
    """γ after one scan, each γ_k ~ p(γ_k | γ_−k, y); M and E swept by it."""
    p = len(gamma)
    for j in range(p):
        k = j if drawn.u[p] < 0.5 else p - 1 - j
        within = gamma[k]
        odds = log_odds(work.M, work.E, k, within, slab, sigma)
        gamma[k] = drawn.u[k] < 1 / (math.exp(-odds) + 1)
        if gamma[k] != within:
            pivot(work.M, k, within, work.row)
            pivot(work.E, k, within, work.row[:p])


def draw_coefficients(sigma: float, z: Array, gamma: Array, beta: Array, work: SlabWork) -> None:
    """β_γ ~ N(β̂_γ, σ² V_γ), each given the previous ones, 0 where γ is 0; M is overwritten."""
    M = work.M
    row = work.row
    p = len(gamma)
    clear(beta)
    for j in range(p):
        if gamma[j]:
            variance = -M[j, j]
            step = sigma * math.sqrt(variance) * z[j]
            beta[j] = M[j, p] + step
            for i in range(p):
                row[i] = -M[j, i]
            for i in range(j + 1, p):
                scaled = row[i] / variance
                M[i, p] += scaled * step
                for k in range(j + 1, p):
                    M[i, k] += scaled * row[k]


def draw_regression(
    slab: Slab,
    c: float,
    drawn: SlabRandomNumbers,
    g: Array,
    gamma: Array,
    beta: Array,
    work: SlabWork,
) -> float:
    """γ after one scan with σ integrated out, σ | γ, y (returned), then β | γ, σ, y; c = yᵀΛy.

    The scan runs forwards or backwards at random, which makes it reversible.  If σ has an upper
    limit, which the marginal ignores, the scan is therefore a proposal that is accepted if σ² ~
    InvGamma(shape, S/2) respects the limit: exact without an incomplete gamma function.

    Args:
        g: two draws of Gamma(shape, 1), for σ² and for the proposal.
    """
    p = len(gamma)
    init_pivots(c + slab.squares, slab, gamma, work)
    copy(gamma, work.before)
    scan_indicators(slab, 0.0, drawn, gamma, work)
    if 0.5 * work.M[p, p] / g[1] > slab.upper * slab.upper:
        copy(work.before, gamma)
        init_pivots(c + slab.squares, slab, gamma, work)
    sigma = math.sqrt(variance_from_gamma(g[0], slab.shape, 0.5 * work.M[p, p], slab.upper))
    draw_coefficients(sigma, drawn.z, gamma, beta, work)
    return sigma
