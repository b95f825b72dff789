"""The second draw of standard deviations: with the states alone it has the posterior on a grid."""

from __future__ import annotations

import numpy as np
import torch
from configured import component
from scipy import stats
from structural_series import block, model, problem

from components.maths.compiled.loops import compile_loop
from components.maths.time_varying import filter_system
from components.series.fast import interweaving, simulation_smoother
from components.series.fast.interweaving import (
    DriveWork,
    Rest,
    ScaledStates,
    ScaleNumbers,
    interweave,
)
from components.series.fast.simulation_smoother import (
    StateRandomNumbers,
    SystemMotion,
    simulate,
    state_work,
)
from runner.execution.rng import Streams


def _draw_all(system, motion, scales, drawn, rest, places, work):
    """α | σ, then σ | noise in units of it, K times for each chain."""
    states, drive = work
    for i in range(len(places.sigma)):
        place = ScaledStates(places.sigma[i], places.states[i])
        for s in range(len(drawn.seeds)):
            for k in range(len(scales.owner)):
                motion.scale[k] = place.sigma[scales.owner[k]]
            numbers = drawn.states
            own = StateRandomNumbers(
                numbers.first[s, i], numbers.shocks[s, i], numbers.errors[s, i]
            )
            simulate(rest.left, system, motion, own, states, place.states)
            again = ScaleNumbers(drawn.scales.z[s, i], drawn.scales.u[s, i])
            interweave(system, motion.values, scales, rest, again, place, drive)


draw_all = compile_loop(_draw_all, (*simulation_smoother.compilable, *interweaving.compilable))


def draw(sweeps, sigma, C, rounds):
    """σ [C, S] and states [C, n, d] after so many rounds, σ of the observations known."""
    system = sweeps.model.system
    noise = sigma[0]
    left = np.where(system.seen, sweeps.model.series.y, 0.0)
    rest = Rest(left, system.seen / noise**2)
    motion = SystemMotion(
        sweeps.model.series.values, np.empty(len(system.noisy)), np.full(sweeps.n, noise)
    )
    places = ScaledStates(np.tile(sigma, (C, 1)), np.empty((C, sweeps.n, sweeps.d)))
    work = (state_work(system), DriveWork(np.empty((sweeps.n, sweeps.d)), np.empty(sweeps.d)))
    drawn = sweeps.numbers(rounds, C, Streams(0).noise)
    draw_all(system, motion, sweeps.model.scales, drawn, rest, places, work)
    return places, rest, motion, work


def test_with_the_states_alone_it_has_the_posterior_on_a_grid():
    """σ of the level, that of the observations known: α | σ, then σ | noise in units of it, nothing
    else."""
    C = 800
    data = problem(missing=(3, 8))
    built = model(block("local_level", df=3.0, guess=0.4, upper=0.7), of=data)
    sweeps = (
        component("inference", "structural_gibbs", chains=1).init(built, data, Streams(0)).sweeps
    )
    sigma = draw(sweeps, np.array([2.5, 0.8]), C, 80)[0].sigma[:, 1]
    scale = built.structure.scales[1]
    grid = np.linspace(1e-3, scale.upper, 300)
    theta = torch.tensor(np.column_stack([np.full(300, 2.5), grid]))
    design = built.design(data.series)
    log = filter_system(
        built.system(theta, design), design.y, design.seen.tolist()
    ).log_density.numpy()
    log = log - (scale.df + 1) * np.log(grid) - scale.df * scale.guess**2 / (2 * grid**2)
    cdf = np.exp(log - log.max()).cumsum()
    assert sigma.max() <= scale.upper
    assert stats.kstest(sigma, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_noise_in_units_of_its_deviation_stays_as_it_was():
    """α moves with every σ that is taken, up to the sign of all of its noise; several σ, of several
    states."""
    data = problem(missing=(3, 8))
    C = 40
    built = model("local_linear_trend", block("seasonal", period=4), of=data, df=4.0)
    sweeps = (
        component("inference", "structural_gibbs", chains=1).init(built, data, Streams(0)).sweeps
    )
    system = sweeps.model.system
    scales = sweeps.model.scales
    sigma = np.array([scale.guess for scale in built.structure.scales])
    places, rest, motion, work = draw(sweeps, sigma, C, 1)
    drawn = sweeps.numbers(1, C, Streams(1).noise).scales
    changed = np.zeros(len(sigma))
    for i in range(C):
        sizes = []
        place = ScaledStates(places.sigma[i], places.states[i])
        for again in (False, True):
            before = place.sigma.copy()
            if again:
                numbers = ScaleNumbers(drawn.z[0, i], drawn.u[0, i])
                interweave(system, motion.values, scales, rest, numbers, place, work[1])
                changed += place.sigma != before
            moves = place.states[1:] - place.states[:-1] @ built.structure.G.numpy().T
            sizes.append(moves[:, system.noisy] / place.sigma[scales.owner])
        sign = np.sign((sizes[0] * sizes[1]).sum(0))
        assert np.allclose(sizes[1], sign * sizes[0], atol=1e-8)
    assert changed[1:].min() > 0.1 * C
