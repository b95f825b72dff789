"""Compiled draws of standard deviations and dynamics, with the states integrated out.

    v = y − F a,  f = F P Fᵀ + h,  log p(y | σ, φ, β, λ) = −½ Σ_t (log f_t + v_t²/f_t)

comes from the Kalman filter; times the priors of σ, φ and β given σ_0 it is the density of z = (log
σ, φ), where a scale has the density p(log σ) = p(σ) σ.  A sweep moves z by slice sampling along one
of the directions V_j and along one coordinate, in randomly placed intervals of fixed lengths, and
by Metropolis-Hastings with independent proposals around a centre c,

    z′ = c + Σ_j ε_j V_j,   ε_j logistic,   q(z′) = Π_j q(ε_j),   V_j orthogonal

Source: Durbin and Koopman (2012), section 7.2.1; Neal (2003), section 4, without stepping out;
Tierney (1994), section 2.3.3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from components.maths.compiled.loops import Array
from components.series.structural.compiled.spike_slab import Slab

SHRINKAGES = 100  # of an interval
LONG_INTERVAL = 8.0  # of one coordinate, long enough to reach other modes, such as scales near 0
# interval length of each proposal of a sweep, in scales of the logistic distribution: wide ones
# reach the tails, narrow ones are accepted more often
TAILS = (4.0, 6.0, 4.0, 6.0)


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
    is_bounded: Array  # [m] bool; False: several coefficients that must be stationary
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


def log_proposal(centre: Array, directions: Array, z: Array, tail: float) -> float:
    """Log density of z as a proposal up to a constant: logistic along each direction."""
    total = 0.0
    for direction in directions:
        along = 0.0
        squares = 0.0
        for i in range(len(z)):
            along += direction[i] * (z[i] - centre[i])
            squares += direction[i] * direction[i]
        x = abs(tail * along / squares)
        total -= x + 2 * math.log1p(math.exp(-x))
    return total


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
