"""Standard deviations of states drawn given their noise in units of them, compiled.

    α = α₀ + σ_j D, where D answers to the noise of scale j in units of σ_j; given D, y is linear in σ_j.

        s ~ N(b/a, 1/a),  a = Σ_t w_t h_t²,  b = Σ_t w_t h_t e_t,  h = F D,  w_t = λ_t/σ² where y is seen,

e: what all but σ_j D leaves of y.  σ_j = |s| is taken with probability p(|s|)/p(σ_j) of the prior,
and α = α₀ + s D with it.

Source: Yu and Meng (2011), section 2; Frühwirth-Schnatter and Wagner (2010), section 3.1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from components.maths.compiled.loops import Array
from components.series.fast import memory
from components.series.fast.memory import clear
from components.series.fast.simulation_smoother import System, multiply, read_state


class ScalePriors(NamedTuple):
    """1/σ_j² ~ Gamma(df/2, squares/2) given σ_j ≤ upper, of S scales; the first is the scale of
    y."""

    df: Array  # [S]
    squares: Array  # df guess² [S]
    upper: Array  # [S]
    shape: Array  # (df + how many numbers have the scale)/2 [S]
    owner: Array  # scale of the noise of each noisy state [k]


class ScaleNumbers(NamedTuple):
    """Random numbers of one draw."""

    z: Array  # normal [S]
    u: Array  # uniform [S]


class Rest(NamedTuple):
    """The part of y that columns leave, and its weights."""

    left: Array  # [n]
    weights: Array  # w [n], 0 where y is not seen


class ScaledStates(NamedTuple):
    """A chain, drawn anew in place."""

    sigma: Array  # [S]
    states: Array  # [n, d]


class DriveWork(NamedTuple):
    """Memory of one draw."""

    D: Array  # [n, d]
    moved: Array  # [d]


def log_prior(sigma: float, df: float, squares: float) -> float:
    """log p(σ) up to a constant, 1/σ² ~ Gamma(df/2, squares/2)."""
    return -(df + 1) * math.log(sigma) - squares / (2 * sigma * sigma)


def drive(
    system: System, values: Array, owner: Array, j: int, place: ScaledStates, work: DriveWork
) -> None:
    """D_1 = 0, D_{t+1} = G D_t + η_t/σ_j, η the noise of the noisy states that scale j owns."""
    D = work.D
    moved = work.moved
    states = place.states
    sigma = place.sigma[j]
    clear(D[0])
    for t in range(len(states) - 1):
        multiply(system, values, D[t], D[t + 1])
        multiply(system, values, states[t], moved)
        for k in range(len(owner)):
            if owner[k] == j:
                i = system.noisy[k]
                D[t + 1, i] += (states[t + 1, i] - moved[i]) / sigma


def interweave(
    system: System,
    values: Array,
    priors: ScalePriors,
    rest: Rest,
    drawn: ScaleNumbers,
    place: ScaledStates,
    work: DriveWork,
) -> None:
    """σ and states after the second draw."""
    sigma = place.sigma
    states = place.states
    D = work.D
    for j in range(1, len(sigma)):
        now = sigma[j]
        drive(system, values, priors.owner, j, place, work)
        a = 0.0
        b = 0.0
        for t in range(len(states)):
            answer = read_state(system, t, D[t])
            weighed = rest.weights[t] * answer
            a += weighed * answer
            b += weighed * (rest.left[t] - read_state(system, t, states[t]) + now * answer)
        s = b / a + drawn.z[j] * (1 / math.sqrt(a))
        new = abs(s)
        df = priors.df[j]
        squares = priors.squares[j]
        odds = log_prior(new, df, squares) - log_prior(now, df, squares)
        if new <= priors.upper[j] and math.log(1 - drawn.u[j]) < odds:
            sigma[j] = new
            for t in range(len(states)):
                for i in range(len(states[t])):
                    states[t, i] += (s - now) * D[t, i]


compilable = (*memory.compilable, multiply, read_state, log_prior, drive, interweave)
