"""Compiled draws of the states of a linear Gaussian series given its observations.

    α_1 ~ N(m, diag s²),   α_{t+1} = G α_t + N(0, diag w),   y_t = F_t α_t + N(0, h_t),   t = 1 … n

States and observations are drawn from the model without its mean; the smoothed states for y minus
those observations are added:

    v = y − F a,  f = F P Fᵀ + h,  K = P Fᵀ/f,  a ← G(a + K v),  P ← G(P − K f Kᵀ)Gᵀ + W,   t = 1 … n
    q = Gᵀ r,  r ← q + Fᵀ(v/f − K q),                                                      t = n … 1
    α_1 = α⁺_1 + m + diag s² r_0,   α_{t+1} = G α_t + η⁺_t + W r_t

Source: Durbin and Koopman (2002), section 2.3; Durbin and Koopman (2012), section 4.9.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compiled, to_array
from components.series.structural.compiled.memory import clear, clear_rows, copy, copy_rows


class System(NamedTuple):
    """Constants of all draws: n times, d states, k noisy states."""

    seen: Array  # [n] bool
    F: Array  # [n, d]
    used: Array  # states with a nonzero column of F
    mean: Array  # m [d]
    sd: Array  # s [d]
    start: Array  # row i of G has the columns columns[start[i]:start[i + 1]] [d + 1]
    columns: Array  # [nnz]
    noisy: Array  # states with noise [k]


class SystemMotion(NamedTuple):
    """Quantities that differ between draws."""

    values: Array  # nonzero values of G in the order of its columns [nnz]
    scale: Array  # √w of the noisy states [k]
    noise: Array  # √h [n]


class StateRandomNumbers(NamedTuple):
    """Standard normal numbers for the first state, the state noise and the observation noise."""

    first: Array  # [d]
    shocks: Array  # [n − 1, k]
    errors: Array  # [n]


class StateWork(NamedTuple):
    """Work arrays of one draw."""

    a: Array  # the filter's mean [d]
    plus: Array  # α⁺ [d]
    M: Array  # P Fᵀ [d]
    r: Array  # [d]
    moved: Array  # [d]
    P: Array  # [d, d]
    GP: Array  # [d, d]
    gains: Array  # K [n, d]
    rest: Array  # y minus drawn observations [n]
    scaled: Array  # v/f [n]
    pulls: Array  # r_t of the noisy states [n − 1, k]
    eta: Array  # noise of states [n − 1, k]
    # moments of the filter, only for derivatives
    means: Array  # a given y_1 … y_t [n, d]
    covariances: Array  # P given y_1 … y_{t−1} [n, d, d]
    weights: Array  # 1/f; 0: y is missing [n]


def build_system(
    seen: Tensor, F: Tensor, mean: Tensor, sd: Tensor, pattern: Tensor, noisy: tuple[int, ...]
) -> System:
    """A system whose G may be nonzero where ``pattern`` [d, d] is true."""
    used = (F != 0).any(0).nonzero().flatten()
    rows, columns = to_array(pattern).nonzero()
    return System(
        seen=to_array(seen),
        F=to_array(F),
        used=to_array(used),
        mean=to_array(mean),
        sd=to_array(sd),
        start=np.searchsorted(rows, np.arange(len(mean) + 1)),
        columns=np.ascontiguousarray(columns),
        noisy=np.array(noisy, dtype=np.int64),
    )


def kept_values(system: System, G: Tensor) -> Array:
    """Values [..., nnz] of matrices G [..., d, d] where the pattern of the system is true."""
    rows = np.repeat(np.arange(len(system.mean)), np.diff(system.start))
    return np.ascontiguousarray(to_array(G)[..., rows, system.columns])


def state_work(system: System, filtered: bool = False) -> StateWork:
    """Allocate the work arrays; if ``filtered``, the filter keeps its moments."""
    (n, d) = system.F.shape
    k = len(system.noisy)
    kept = n * filtered
    return StateWork(
        a=np.empty(d),
        plus=np.empty(d),
        M=np.empty(d),
        r=np.empty(d),
        moved=np.empty(d),
        P=np.empty((d, d)),
        GP=np.empty((d, d)),
        gains=np.empty((n, d)),
        rest=np.empty(n),
        scaled=np.empty(n),
        pulls=np.empty((n - 1, k)),
        eta=np.empty((n - 1, k)),
        means=np.empty((kept, d)),
        covariances=np.empty((kept, d, d)),
        weights=np.empty(kept),
    )


def multiply(system: System, values: Array, x: Array, out: Array) -> None:
    """out = G x for one vector."""
    start = system.start
    columns = system.columns
    for i in range(len(out)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total


def multiply_transposed(system: System, values: Array, x: Array, out: Array) -> None:
    """out = Gᵀ x."""
    start = system.start
    columns = system.columns
    clear(out)
    for i in range(len(x)):
        for k in range(start[i], start[i + 1]):
            out[columns[k]] += values[k] * x[i]


def read_state(system: System, t: int, state: Array) -> float:
    """F_t α."""
    total = 0.0
    for i in system.used:
        total += system.F[t, i] * state[i]
    return total


def init_covariance(sd: Array, P: Array) -> None:
    """P = diag s²."""
    clear_rows(P)
    for i in range(len(sd)):
        P[i, i] = sd[i] * sd[i]


def predict_variance(system: System, t: int, noise: float, P: Array, M: Array) -> float:
    """The variance f = F P Fᵀ + h of observation t; leaves P Fᵀ in M."""
    F = system.F
    used = system.used
    for i in range(len(M)):
        total = 0.0
        for j in used:
            total += P[i, j] * F[t, j]
        M[i] = total
    return read_state(system, t, M) + noise * noise


def predict_covariance(
    system: System, motion: SystemMotion, weight: float, P: Array, M: Array, GM: Array, GP: Array
) -> None:
    """P ← G (P − M Mᵀ/f) Gᵀ + W for the next time; ``weight`` is 1/f, or 0 if y is missing.

    Both products loop over the same rows, because each row of G has few nonzero values."""
    multiply(system, motion.values, M, GM)
    d = len(P)
    start = system.start
    columns = system.columns
    values = motion.values
    for i in range(d):
        out = GP[i]
        if start[i] == start[i + 1]:
            clear(out)
        for k in range(start[i], start[i + 1]):
            value = values[k]
            row = P[columns[k]]
            for j in range(d):
                out[j] = value * row[j] + (out[j] if k > start[i] else 0.0)
    for i in range(d):
        out = P[i]
        gain = weight * GM[i]
        for j in range(i + 1):
            out[j] = -gain * GM[j]
        for k in range(start[i], start[i + 1]):
            value = values[k]
            column = columns[k]
            for j in range(i + 1):
                out[j] += value * GP[j, column]
        for j in range(i):
            P[j, i] = out[j]
    for k in range(len(system.noisy)):
        P[system.noisy[k], system.noisy[k]] += motion.scale[k] * motion.scale[k]


def filter_series(y: Array, system: System, motion: SystemMotion, work: StateWork) -> float:
    """log p(y) up to a constant; K [n, d] and v/f [n] are left in ``work``."""
    n, d = system.F.shape
    total = 0.0
    copy(system.mean, work.a)
    init_covariance(system.sd, work.P)
    for t in range(n):
        weight = 0.0
        clear(work.M)
        work.scaled[t] = 0.0
        if system.seen[t]:
            v = y[t] - read_state(system, t, work.a)
            f = predict_variance(system, t, motion.noise[t], work.P, work.M)
            weight = 1 / f
            work.scaled[t] = v * weight
            total += math.log(f) + v * work.scaled[t]
        for i in range(d):
            work.gains[t, i] = work.M[i] * weight
            work.a[i] += work.M[i] * work.scaled[t]
        if len(work.weights):
            work.weights[t] = weight
            copy(work.a, work.means[t])
            copy_rows(work.P, work.covariances[t])
        if t < n - 1:
            multiply(system, motion.values, work.a, work.moved)
            copy(work.moved, work.a)
            predict_covariance(system, motion, weight, work.P, work.M, work.moved, work.GP)
    return -total / 2


def subtract_draw(
    y: Array, system: System, motion: SystemMotion, drawn: StateRandomNumbers, work: StateWork
) -> None:
    """y minus observations drawn from the model without its mean."""
    plus = work.plus
    for i in range(len(plus)):
        plus[i] = system.sd[i] * drawn.first[i]
    for t in range(len(y)):
        work.rest[t] = y[t] - read_state(system, t, plus) - motion.noise[t] * drawn.errors[t]
        if t < len(y) - 1:
            multiply(system, motion.values, plus, work.moved)
            copy(work.moved, plus)
            for k in range(len(system.noisy)):
                plus[system.noisy[k]] += motion.scale[k] * drawn.shocks[t, k]


def smooth_backwards(system: System, values: Array, work: StateWork) -> None:
    """Backward pass: r_0, and r_t of the noisy states."""
    n, d = system.F.shape
    r = work.r
    clear(r)
    for t in range(n - 1, -1, -1):
        if t < n - 1:
            for k in range(len(system.noisy)):
                work.pulls[t, k] = r[system.noisy[k]]
            multiply_transposed(system, values, r, work.moved)
            copy(work.moved, r)
        if system.seen[t]:
            total = 0.0
            for i in range(d):
                total += work.gains[t, i] * r[i]
            s = work.scaled[t] - total
            for i in system.used:
                r[i] += system.F[t, i] * s


def draw_path(
    system: System, motion: SystemMotion, drawn: StateRandomNumbers, work: StateWork, alpha: Array
) -> None:
    """Draw α [n, d] and its noise."""
    n, d = alpha.shape
    sd = system.sd
    scale = motion.scale
    noisy = system.noisy
    for i in range(d):
        alpha[0, i] = system.mean[i] + sd[i] * drawn.first[i] + sd[i] * sd[i] * work.r[i]
    for t in range(n - 1):
        multiply(system, motion.values, alpha[t], alpha[t + 1])
        for k in range(len(noisy)):
            pull = scale[k] * scale[k] * work.pulls[t, k]
            work.eta[t, k] = scale[k] * drawn.shocks[t, k] + pull
            alpha[t + 1, noisy[k]] += work.eta[t, k]


def filter_one_state(
    y: Array, system: System, motion: SystemMotion, drawn: StateRandomNumbers, work: StateWork
) -> None:
    """``subtract_draw`` and ``filter_series`` for a system with one state, in scalar arithmetic.

    The next mean and variance are a ← G (1 − K F) a + G K e, e = y − F α⁺ − ε⁺, and
    P ← (G² h) P/f + W: this form has the fewest operations that depend on the last a or P.
    """
    n = len(y)
    G = motion.values[0]
    scale = motion.scale[0]
    F = system.F
    noise = motion.noise
    a = system.mean[0]
    plus = system.sd[0] * drawn.first[0]
    P = system.sd[0] * system.sd[0]
    for t in range(n):
        work.scaled[t] = 0.0
        work.gains[t, 0] = 0.0
        kept = G
        added = 0.0
        spread = G * G
        if system.seen[t]:
            row = F[t, 0]
            h = noise[t] * noise[t]
            e = y[t] - row * plus - noise[t] * drawn.errors[t]
            inverse = 1 / (row * row * P + h)
            gain = P * row * inverse
            work.scaled[t] = (e - row * a) * inverse
            work.gains[t, 0] = gain
            kept = G * (1 - gain * row)
            added = G * gain * e
            spread = G * G * h * inverse
        if t < n - 1:
            a = kept * a + added
            plus = G * plus + scale * drawn.shocks[t, 0]
            P = spread * P + scale * scale


def draw_one_state(
    system: System, motion: SystemMotion, drawn: StateRandomNumbers, work: StateWork, alpha: Array
) -> None:
    """``smooth_backwards`` and ``draw_path`` for a system with one state, r ← (1 − F K) G r + F
    v/f."""
    n = len(alpha)
    G = motion.values[0]
    scale = motion.scale[0]
    F = system.F
    r = F[n - 1, 0] * work.scaled[n - 1]
    for t in range(n - 2, -1, -1):
        work.pulls[t, 0] = r
        row = F[t, 0]
        r = (1 - row * work.gains[t, 0]) * G * r + row * work.scaled[t]
    state = system.mean[0] + system.sd[0] * drawn.first[0] + system.sd[0] * system.sd[0] * r
    alpha[0, 0] = state
    for t in range(n - 1):
        work.eta[t, 0] = scale * drawn.shocks[t, 0] + scale * scale * work.pulls[t, 0]
        state = G * state + work.eta[t, 0]
        alpha[t + 1, 0] = state


def simulate(
    y: Array,
    system: System,
    motion: SystemMotion,
    drawn: StateRandomNumbers,
    work: StateWork,
    alpha: Array,
) -> None:
    """States α ~ p(α_1, …, α_n | y) [n, d]; their noise is left in ``work``."""
    if alpha.shape[1] == 1 and len(system.noisy) == 1 and len(motion.values) == 1:
        filter_one_state(y, system, motion, drawn, work)
        draw_one_state(system, motion, drawn, work, alpha)
    else:
        subtract_draw(y, system, motion, drawn, work)
        filter_series(work.rest, system, motion, work)
        smooth_backwards(system, motion.values, work)
        draw_path(system, motion, drawn, work, alpha)


@compiled(allocates=False)
def _simulate_all(
    y: Array,
    system: System,
    motion: SystemMotion,
    drawn: StateRandomNumbers,
    work: StateWork,
    alpha: Array,
) -> None:
    for c in range(len(y)):
        chain_motion = SystemMotion(motion.values[c], motion.scale[c], motion.noise[c])
        numbers = StateRandomNumbers(drawn.first[c], drawn.shocks[c], drawn.errors[c])
        simulate(y[c], system, chain_motion, numbers, work, alpha[c])


def simulate_states(
    y: Array, system: System, motion: SystemMotion, drawn: StateRandomNumbers
) -> Array:
    """States α ~ p(α_1, …, α_n | y) [C, n, d] for y [C, n]; motion and numbers also have C rows."""
    alpha = np.empty((len(y), *system.F.shape))
    _simulate_all(y, system, motion, drawn, state_work(system), alpha)
    return alpha
