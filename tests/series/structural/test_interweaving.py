"""The second draw of standard deviations: with the states alone it has the posterior on a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from components.maths.compiled import loops
from components.maths.time_varying import filter_system
from components.series.maths.simulation_smoother import driven
from runner.execution.rng import Streams
from tests.configured import component
from tests.structural_series import F64, block, model, problem

needs_numba = pytest.mark.skipif(not loops.available(), reason="numba is not installed")


def test_with_the_states_alone_it_has_the_posterior_on_a_grid():
    """σ of the level, that of the observations known: α | σ, then σ | noise in units of it, nothing
    else."""
    C, data, rng = 800, problem(missing=(3, 8)), Streams(0)
    built = model(block("local_level", df=3.0, guess=0.4, upper=0.7), of=data)
    state = component("inference", "structural_gibbs", chains=C).init(built, data, rng)
    sweeps = state.sweeps
    start = torch.tensor([2.5, 0.8], dtype=F64).expand(C, -1).clone()
    place = replace(state.place, sigma=start)
    left = torch.where(sweeps.design.seen, sweeps.design.y, 0.0).expand(C, -1)
    weights = sweeps.design.seen.to(F64).unsqueeze(0) / 2.5**2
    for _ in range(80):
        drawn = sweeps.numbers(1, C, rng.noise)
        alpha, _ = sweeps._states(place, sweeps.columns(place.phi), drawn, loops.serve(start))
        sigma, _ = sweeps.interweaving.draw(
            sweeps.structure.transition(place.phi),
            left,
            weights,
            place.sigma,
            alpha,
            *sweeps.interweaving.numbers(C, rng.noise),
        )
        place = replace(place, sigma=sigma)
    scale = built.structure.scales[1]
    grid = np.linspace(1e-3, scale.upper, 300)
    theta = torch.tensor(np.column_stack([np.full(300, 2.5), grid]))
    design = built.design(data.series)
    log = filter_system(
        built.system(theta, design), design.y, design.seen.tolist()
    ).log_density.numpy()
    log = log - (scale.df + 1) * np.log(grid) - scale.df * scale.guess**2 / (2 * grid**2)
    cdf = np.exp(log - log.max()).cumsum()
    assert float(place.sigma[:, 1].max()) <= scale.upper
    assert (
        stats.kstest(place.sigma[:, 1].numpy(), lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue
        > 1e-3
    )


@pytest.mark.parametrize("quick", [False, pytest.param(True, marks=needs_numba)])
def test_noise_in_units_of_its_deviation_stays_as_it_was(quick, monkeypatch):
    """α moves with every σ that is taken, up to the sign of all of its noise; several σ, of several
    states."""
    monkeypatch.setattr(loops, "serve", lambda x: quick)
    data, C = problem(missing=(3, 8)), 40
    blocks = ["local_linear_trend", block("seasonal", period=4)]
    built = model(*blocks, of=data, df=4.0)
    state = component("inference", "structural_gibbs", chains=C).init(built, data, Streams(0))
    sweeps, place = state.sweeps, state.place
    G = built.structure.transition(place.phi)
    alpha, _ = sweeps._states(
        place, sweeps.columns(place.phi), sweeps.numbers(1, C, Streams(0).noise), quick
    )
    left, weights = (
        torch.where(sweeps.design.seen, sweeps.design.y, 0.0).expand(C, -1),
        sweeps._weights(place),
    )
    weights = weights / place.sigma[:, :1].square()
    sigma, moved = sweeps.interweaving.draw(
        G, left, weights, place.sigma, alpha, *sweeps.interweaving.numbers(C, Streams(1).noise)
    )
    noisy, sizes = list(sweeps.layout.noisy), []
    for a, s in ((alpha, place.sigma), (moved, sigma)):
        sizes.append((a[:, 1:] - a[:, :-1] @ G.mT)[..., noisy] / s[:, sweeps.owner].unsqueeze(1))
    sign = (sizes[0] * sizes[1]).sum(1, keepdim=True).sign()
    assert torch.allclose(sizes[1], sign * sizes[0], atol=1e-8)
    assert float((sigma != place.sigma).double().mean(0)[1:].min()) > 0.1


def test_states_answer_to_their_noise_alone():
    data = problem()
    built = model("local_linear_trend", block("seasonal", period=4), of=data)
    state = component("inference", "structural_gibbs", chains=2).init(built, data, Streams(0))
    noise = torch.randn(2, 23, 5, generator=torch.Generator().manual_seed(0), dtype=F64)
    G = built.structure.G.expand(2, 5, 5)
    found = driven(state.sweeps.layout, G, noise)
    D = torch.zeros(2, 5, dtype=F64)
    for t in range(24):
        assert torch.allclose(found[:, t], D, atol=1e-12)
        D = D @ G[0].T + (noise[:, t] if t < 23 else 0.0)
