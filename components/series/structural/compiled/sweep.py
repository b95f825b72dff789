"""Compiled Gibbs sweeps of a structural time series.

Every function works on one chain, in place; ``run_sweeps`` runs several sweeps of all chains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array, compiled
from components.series.structural.compiled.heavy_tails import Tails, draw_precisions, slice_freedom
from components.series.structural.compiled.marginal_moves import (
    MoveNumbers,
    ScalePriors,
    SweepRows,
    from_coordinates,
    log_dynamics_density,
    log_scale_density,
    log_slab_density,
    propose,
    to_coordinates,
)
from components.series.structural.compiled.memory import clear, clear_rows, copy, copy_rows
from components.series.structural.compiled.simulation_smoother import (
    StateRandomNumbers,
    StateWork,
    System,
    SystemMotion,
    filter_series,
    simulate,
    state_work,
)
from components.series.structural.compiled.spike_slab import (
    Slab,
    SlabRandomNumbers,
    SlabWork,
    draw_regression,
    slab_work,
)
from components.series.structural.compiled.stocks import accumulate
from components.series.structural.compiled.truncated_gamma import (
    variance_from_gamma,
)
from components.series.structural.compiled.whitening import (
    WhiteWork,
    draw_columns,
    log_columns,
    white_work,
    whiten,
)


class SweepSeries(NamedTuple):
    """One series: n times, p columns, Q coefficients φ of rows of G."""

    y: Array  # [n]
    flow: Array  # columns, or inflows of stocks [p, n]
    fades: Array  # index of the φ with which a column fades, −1: not a stock [p]
    limits: Array  # limits κ of stocks, 0: none [p]
    has_stocks: bool
    gram: Array  # XᵀX over observed times [p, p]
    values: Array  # values of G without φ [nnz]
    changes: Array  # change of these values per unit of each φ [Q, nnz]


class SweepModel(NamedTuple):
    """Constants of all sweeps."""

    series: SweepSeries
    system: System
    slab: Slab
    scales: ScalePriors
    rows: SweepRows
    tails: Tails
    # all parameters are drawn with the states integrated out, (log σ, φ) also with β
    is_marginal: bool


class SweepRandomNumbers(NamedTuple):
    """Random numbers of K sweeps of C chains, [K, C, …]; without these dimensions for one sweep of
    one chain."""

    # of the columns with the states integrated out; [K, C, 0]: not drawn
    columns: SlabRandomNumbers
    states: StateRandomNumbers  # [K, C, 0]: not drawn, the sweep ends before them
    slab: SlabRandomNumbers
    g: Array  # Gamma(shape_j, 1) of S scales, the first twice [S + 1]
    moves: MoveNumbers
    seeds: Array  # of ν and of λ


class SweepChain(NamedTuple):
    """States of C chains, [C, …], or of one chain."""

    sigma: Array  # [S]
    phi: Array  # [Q]
    gamma: Array  # included columns [p] bool
    beta: Array  # [p]
    nu: Array  # [1]
    precisions: Array  # λ [n]; [0]: all are 1
    directions: Array  # V of (log σ, φ), orthogonal rows [S + Q, S + Q]
    earlier: Array  # u of earlier draws [M, S + Q]; M = 0: none yet
    alpha: Array  # [n, d]


class SweepWork(NamedTuple):
    """Work arrays of one chain."""

    motion: SystemMotion
    Xy: Array  # columns with accumulated stocks, and y last [n, p + 1]
    rows: Array  # Xᵀ [p, n]
    rest: Array  # residuals of y [n]
    z: Array  # errors in units of σ [n]
    weights: Array  # λ, 0 at missing times [n]
    total: Array  # sums of squares [S]
    states: StateWork
    white: WhiteWork
    slab: SlabWork
    phi: Array  # of one row, and of its autoregression of the next lower order [2, Q]
    place: Array  # log σ and φ [S + Q]
    current: Array  # u [S + Q]
    trial: Array  # u′ [S + Q]


def sweep_work(model: SweepModel) -> SweepWork:
    """Allocate the work arrays."""
    n = len(model.system.seen)
    p = len(model.series.flow)
    q = len(model.series.changes)
    size = len(model.scales.df) + q
    nnz = len(model.series.values)
    k = len(model.system.noisy)
    y = model.series.y[:, None]
    return SweepWork(
        motion=SystemMotion(np.empty(nnz), np.empty(k), np.empty(n)),
        Xy=np.ascontiguousarray(np.concatenate([model.series.flow.T, y], 1)),
        rows=model.series.flow.copy(),
        rest=np.empty(n),
        z=np.empty(n),
        weights=np.empty(n),
        total=np.empty(len(model.scales.df)),
        states=state_work(model.system),
        white=white_work(model.system, p + 1),
        slab=slab_work(p),
        phi=np.empty((2, q)),
        place=np.empty(size),
        current=np.empty(size),
        trial=np.empty(size),
    )


def set_motion(model: SweepModel, chain: SweepChain, motion: SystemMotion) -> None:
    """Set G and the standard deviations of noise at the chain's φ, σ and λ."""
    series = model.series
    owner = model.scales.owner
    copy(series.values, motion.values)
    for q in range(len(chain.phi)):
        for i in range(len(motion.values)):
            motion.values[i] += chain.phi[q] * series.changes[q, i]
    for k in range(len(owner)):
        motion.scale[k] = chain.sigma[owner[k]]
    for t in range(len(motion.noise)):
        motion.noise[t] = chain.sigma[0]
    for t in range(len(chain.precisions)):
        motion.noise[t] = chain.sigma[0] / math.sqrt(chain.precisions[t])


def grow_stocks(series: SweepSeries, phi: Array, work: SweepWork) -> None:
    """Accumulate the columns that are stocks, at the chain's φ."""
    for j in range(len(series.flow)):
        if series.fades[j] >= 0:
            accumulate(series.flow[j], phi[series.fades[j]], series.limits[j], work.rows[j])
            for t in range(len(series.y)):
                work.Xy[t, j] = work.rows[j, t]


def subtract_columns(y: Array, rows: Array, beta: Array, rest: Array) -> None:
    """y − Xβ; coefficients of 0 are skipped."""
    clear(rest)
    for j in range(len(beta)):
        if beta[j] != 0.0:
            row = rows[j]
            for t in range(len(y)):
                rest[t] += row[t] * beta[j]
    for t in range(len(y)):
        rest[t] = y[t] - rest[t]


def subtract_states(model: SweepModel, alpha: Array, rest: Array) -> None:
    """y − Fα, 0 at missing times."""
    system = model.system
    y = model.series.y
    clear(rest)
    for i in system.used:
        for t in range(len(rest)):
            rest[t] += system.F[t, i] * alpha[t, i]
    for t in range(len(rest)):
        rest[t] = y[t] - rest[t] if system.seen[t] else 0.0


def set_weights(seen: Array, precisions: Array, weights: Array) -> None:
    """λ where y is observed, 0 elsewhere."""
    for t in range(len(weights)):
        weights[t] = 1.0 if seen[t] else 0.0
    for t in range(len(precisions)):
        weights[t] *= precisions[t]


def draw_scales(priors: ScalePriors, eta: Array, g: Array, sigma: Array, total: Array) -> None:
    """σ_j | the noise η [n − 1, k] of its states, j ≥ 1."""
    owner = priors.owner
    clear(total)
    for k in range(len(owner)):
        squares = 0.0
        for t in range(len(eta)):
            squares += eta[t, k] * eta[t, k]
        total[owner[k]] += squares
    for j in range(1, len(sigma)):
        half = 0.5 * (priors.squares[j] + total[j])
        sigma[j] = math.sqrt(variance_from_gamma(g[j], priors.shape[j], half, priors.upper[j]))


def weigh_columns(model: SweepModel, is_weighed: bool, work: SweepWork) -> float:
    """XᵀΛX and XᵀΛe in the work arrays of the slab, and eᵀΛe, for residuals e of y after its
    states."""
    A = work.slab.A
    X = work.Xy
    weights = work.weights
    p = len(A)
    c = 0.0
    clear(work.slab.b)
    for t in range(len(weights)):
        weighed = weights[t] * work.rest[t]
        c += work.rest[t] * weighed
        for j in range(p):
            work.slab.b[j] += X[t, j] * weighed
    if not is_weighed:
        copy_rows(model.series.gram, A)
        return c
    clear_rows(A)
    for t in range(len(weights)):
        for i in range(p):
            for j in range(i + 1):
                A[i, j] += weights[t] * X[t, i] * X[t, j]
    for i in range(p):
        for j in range(i):
            A[j, i] = A[i, j]
    return c


def draw_tails(model: SweepModel, chain: SweepChain, seeds: Array, work: SweepWork) -> None:
    """Draw ν with the precisions integrated out, then the precisions."""
    seen = model.system.seen
    z = work.z
    subtract_columns(work.rest, work.rows, chain.beta, z)
    for t in range(len(z)):
        z[t] /= chain.sigma[0]
    if model.tails.is_nu_sampled:
        chain.nu[0] = slice_freedom(model.tails, z, seen, chain.nu[0], seeds[-2])
    draw_precisions(z, seen, chain.nu[0], seeds[-1], chain.precisions)
    set_weights(seen, chain.precisions, work.weights)


def set_parameters(model: SweepModel, chain: SweepChain, z: Array, work: SweepWork) -> None:
    """Set σ, φ and stocks to z = (log σ, φ)."""
    S = len(chain.sigma)
    for j in range(S):
        chain.sigma[j] = math.exp(z[j])
    copy(z[S:], chain.phi)
    if model.series.has_stocks:
        grow_stocks(model.series, chain.phi, work)


def log_marginal(model: SweepModel, chain: SweepChain, z: Array, work: SweepWork) -> float:
    """log p(log σ, φ | γ, β, λ, y) at z up to a constant, with the states integrated out, or without
    β; sets the chain to z."""
    set_parameters(model, chain, z, work)
    prior = log_scale_density(chain.sigma, model.scales)
    prior += log_dynamics_density(chain.phi, model.rows, work.phi[0], work.phi[1])
    if prior == -math.inf:
        return prior
    set_motion(model, chain, work.motion)
    if model.is_marginal and len(chain.beta) > 0:
        prior += whiten(work.Xy, model.system, work.motion, work.states, work.white)
        return prior + log_columns(work.white, model.slab, chain.sigma[0], chain.gamma, work.slab)
    subtract_columns(model.series.y, work.rows, chain.beta, work.rest)
    prior += log_slab_density(model.slab, chain.sigma[0], chain.gamma, chain.beta)
    return prior + filter_series(work.rest, model.system, work.motion, work.states)


def draw_parameters(
    model: SweepModel, chain: SweepChain, drawn: MoveNumbers, work: SweepWork
) -> None:
    """Move z = (log σ, φ) given γ, β and λ, with the states integrated out."""
    z = work.place
    S = len(chain.sigma)
    for j in range(S):
        z[j] = math.log(chain.sigma[j])
    copy(chain.phi, z[S:])
    to_coordinates(chain.directions, z, work.current)
    value = log_marginal(model, chain, z, work)
    for k in range(len(drawn.u)):
        ratio = propose(k, chain.earlier, drawn, work.current, work.trial) - value
        from_coordinates(chain.directions, work.trial, z)
        trial = log_marginal(model, chain, z, work)
        if math.log(1 - drawn.u[k, 1]) <= ratio + trial:
            copy(work.trial, work.current)
            value = trial
    from_coordinates(chain.directions, work.current, z)
    set_parameters(model, chain, z, work)


def sweep(model: SweepModel, drawn: SweepRandomNumbers, chain: SweepChain, work: SweepWork) -> None:
    """One sweep of one chain; without random numbers for the states it ends before their draw."""
    series = model.series
    slab = model.slab
    tails = model.tails
    if len(drawn.moves.u) > 0:
        draw_parameters(model, chain, drawn.moves, work)
    if len(drawn.states.errors) == 0:
        return
    set_motion(model, chain, work.motion)
    if len(drawn.columns.u) > 0:
        whiten(work.Xy, model.system, work.motion, work.states, work.white)
        draw_columns(
            work.white, slab, chain.sigma[0], drawn.columns, chain.gamma, chain.beta, work.slab
        )
    subtract_columns(series.y, work.rows, chain.beta, work.rest)
    simulate(work.rest, model.system, work.motion, drawn.states, work.states, chain.alpha)
    if model.is_marginal:
        return
    draw_scales(model.scales, work.states.eta, drawn.g, chain.sigma, work.total)
    subtract_states(model, chain.alpha, work.rest)
    set_weights(model.system.seen, chain.precisions, work.weights)
    c = weigh_columns(model, series.has_stocks or tails.is_student, work)
    g = drawn.g[:: len(chain.sigma)]
    chain.sigma[0] = draw_regression(slab, c, drawn.slab, g, chain.gamma, chain.beta, work.slab)
    if tails.is_student:
        draw_tails(model, chain, drawn.seeds, work)


@compiled(allocates=False)
def run_sweeps(
    model: SweepModel, numbers: SweepRandomNumbers, chains: SweepChain, kept: Array, work: SweepWork
) -> None:
    """Run all sweeps of all chains; stores (σ, β) of each in ``kept`` [K, C, S + p]."""
    S = chains.sigma.shape[1]
    for i in range(len(chains.sigma)):
        chain = SweepChain(
            chains.sigma[i],
            chains.phi[i],
            chains.gamma[i],
            chains.beta[i],
            chains.nu[i : i + 1],
            chains.precisions[i],
            chains.directions[i],
            chains.earlier[i],
            chains.alpha[i],
        )
        if model.series.has_stocks:
            grow_stocks(model.series, chain.phi, work)
        for s in range(len(kept)):
            states = numbers.states
            drawn = SweepRandomNumbers(
                SlabRandomNumbers(numbers.columns.u[s, i], numbers.columns.z[s, i]),
                StateRandomNumbers(states.first[s, i], states.shocks[s, i], states.errors[s, i]),
                SlabRandomNumbers(numbers.slab.u[s, i], numbers.slab.z[s, i]),
                numbers.g[s, i],
                MoveNumbers(numbers.moves.u[s, i], numbers.moves.t[s, i]),
                numbers.seeds[s, i],
            )
            sweep(model, drawn, chain, work)
            copy(chain.sigma, kept[s, i, :S])
            copy(chain.beta, kept[s, i, S:])
