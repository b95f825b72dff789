"""Compiled moves of standard deviations and dynamics, with the states integrated out.

    v = y − F a,  f = F P Fᵀ + h,  log p(y | σ, φ, β, λ) = −½ Σ_t (log f_t + v_t²/f_t)

comes from the Kalman filter; times the priors of σ, φ and β given σ_0 it is the density of z = (log
σ, φ), where a scale has the density p(log σ) = p(σ) σ.  With z = Σ_j u_j V_j, V_j orthogonal,
Metropolis-Hastings moves are a step along one direction, and an independent proposal from a kernel
density estimate of M earlier draws u_m, with t_ν of dimension D and ν = D + 2 as kernel:

    u′_j = u_j + c ε_j,   u′ = u_m + h ε,   ε ~ t_ν,   q(u) ∝ Σ_m (1 + |u − u_m|²/(ν h²))^{−(D+1)}

Source: Durbin and Koopman (2012), section 7.2.1; Tierney (1994), section 2.3; Silverman (1986),
section 4.3.2 (h).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from components.maths.compiled.loops import Array
from components.series.structural.compiled.memory import clear, copy
from components.series.structural.compiled.spike_slab import Slab

MOVES = 6  # of a sweep, of which all are steps while there are no earlier draws
# length c of the steps: long ones reach other modes, such as scales near 0
STEPS = (2.4, 0.6, 0.15)
WALKS = 2  # steps of a sweep once there are earlier draws


class MoveNumbers(NamedTuple):
    """Random numbers for K ≥ 0 moves."""

    u: Array  # uniform: of the direction or the earlier draw, and of the acceptance [K, 2]
    t: Array  # t_ν [K, D]


class ScalePriors(NamedTuple):
    """1/σ_j² ~ Gamma(df/2, squares/2) given σ_j ≤ upper, for S scales; the first is the scale of
    y."""

    df: Array  # [S]
    squares: Array  # df guess² [S]
    upper: Array  # [S]
    shape: Array  # (df + number of values with the scale)/2 [S]
    owner: Array  # index of the scale of each noisy state [k]


class SweepRows(NamedTuple):
    """Priors of the m rows of G with unknown coefficients; row i has φ[first[i]:first[i + 1]]."""

    first: Array  # [m + 1]
    prior: Array  # precision and mean of φ [m, 2]
    is_bounded: Array  # [m] bool; False for several coefficients that must be stationary
    bounds: Array  # [m, 2]


def is_stationary(phi: Array, lower: Array) -> bool:
    """True if x_t = Σ φ_j x_{t−j} + ε_t is stationary: all partial autocorrelations lie in (−1, 1).

    Source: Monahan (1984).
    """
    k = len(phi)
    for order in range(k, 0, -1):
        r = phi[order - 1]
        if not abs(r) < 1:
            return False
        for j in range(order - 1):
            lower[j] = (phi[j] + r * phi[order - 2 - j]) / (1 - r * r)
        for j in range(order - 1):
            phi[j] = lower[j]
    return True


def kernel_width(draws: Array) -> float:
    """h for M draws [M, D] with unit standard deviations."""
    M, D = draws.shape
    return (4 / ((D + 2) * M)) ** (1 / (D + 4))


def log_kernel_density(draws: Array, u: Array) -> float:
    """log q(u) up to a constant."""
    D = len(u)
    width = kernel_width(draws)
    total = 0.0
    for m in range(len(draws)):
        squares = 0.0
        for j in range(D):
            away = u[j] - draws[m, j]
            squares += away * away
        total += (1 + squares / ((D + 2) * width * width)) ** -(D + 1)
    return math.log(total)


def propose(k: int, draws: Array, drawn: MoveNumbers, u: Array, trial: Array) -> float:
    """Move k from u; returns log q(u) − log q(u′), 0 for a step."""
    if k < WALKS or len(draws) == 0:
        copy(u, trial)
        j = int(drawn.u[k, 0] * len(u))
        trial[j] += STEPS[k % len(STEPS)] * drawn.t[k, j]
        return 0.0
    centre = draws[int(drawn.u[k, 0] * len(draws))]
    width = kernel_width(draws)
    for j in range(len(u)):
        trial[j] = centre[j] + width * drawn.t[k, j]
    return log_kernel_density(draws, u) - log_kernel_density(draws, trial)


def to_coordinates(directions: Array, z: Array, u: Array) -> None:
    """u_j = V_jᵀz/|V_j|²."""
    for j in range(len(u)):
        along = 0.0
        squares = 0.0
        for i in range(len(z)):
            along += directions[j, i] * z[i]
            squares += directions[j, i] * directions[j, i]
        u[j] = along / squares


def from_coordinates(directions: Array, u: Array, z: Array) -> None:
    """z = Σ_j u_j V_j."""
    clear(z)
    for j in range(len(u)):
        for i in range(len(z)):
            z[i] += u[j] * directions[j, i]


def log_scale_density(sigma: Array, priors: ScalePriors) -> float:
    """log p(log σ) of all scales up to a constant; −∞ beyond their limits."""
    value = 0.0
    for j in range(len(sigma)):
        if not sigma[j] <= priors.upper[j]:
            return -math.inf
        value -= priors.df[j] * math.log(sigma[j])
        value -= priors.squares[j] / (2 * sigma[j] * sigma[j])
    return value


def log_dynamics_density(phi: Array, rows: SweepRows, copied: Array, lower: Array) -> float:
    """log p(φ) up to a constant; −∞ outside the support."""
    value = 0.0
    for m in range(len(rows.prior)):
        first = rows.first[m]
        last = rows.first[m + 1]
        for q in range(first, last):
            away = phi[q] - rows.prior[m, 1]
            value -= 0.5 * rows.prior[m, 0] * away * away
            copied[q - first] = phi[q]
            if rows.is_bounded[m] and not rows.bounds[m, 0] < phi[q] < rows.bounds[m, 1]:
                return -math.inf
        if not rows.is_bounded[m] and not is_stationary(copied[: last - first], lower):
            return -math.inf
    return value


def log_slab_density(slab: Slab, sigma: float, gamma: Array, beta: Array) -> float:
    """log p(β | γ, σ) up to terms independent of σ."""
    value = 0.0
    for i in range(len(beta)):
        if gamma[i]:
            value -= math.log(sigma)
            for j in range(len(beta)):
                value -= beta[i] * slab.omega[i, j] * beta[j] / (2 * sigma * sigma)
    return value
