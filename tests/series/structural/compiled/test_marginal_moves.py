"""Standard deviations and dynamics, drawn with the states integrated out, have the posterior on a
grid."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import component, double, draw_normal
from support.series.structural_series import F64, block, model, problem

from components.maths.time_varying import filter_system
from components.series.structural.structural_gibbs import learn_directions
from runner.execution.rng import Streams

C = 800
POINTS = 60


def setup(*parts, **keys):
    data = problem(missing=(3, 8))
    data = replace(data, observations=data.observations - data.observations.nanmean())
    built = model(*parts, of=data, **keys)
    state = component("inference", "structural_gibbs", chains=C).init(built, data, Streams(0))
    return data, built, state


LEVEL = block("local_level", df=3.0, guess=0.4, upper=0.7)
AUTOREGRESSION = block("autoregressive", df=3.0, guess=0.4, upper=0.7)


@pytest.mark.parametrize(
    ("part", "second", "broken"),
    [
        (LEVEL, "level_sd", False),
        (LEVEL, "level_sd", True),
        (AUTOREGRESSION, "ar_1", False),
    ],
)
def test_draws_follow_the_posterior_on_a_grid(part, second, broken):
    """Two coordinates, with the others fixed by a narrow prior; then with other directions and
    kernels around earlier draws of another place.  Broken: without the Jacobian of log σ."""
    df = 3.0 if second == "level_sd" else 1e4
    part = part if second == "level_sd" else part.model_copy(update={"df": df})
    data, built, state = setup(part, df=3.0, upper=1.5)
    state.sweeps.model.scales.df[:] += broken  # as without the Jacobian of log σ
    place = state.place
    turned = torch.linalg.qr(torch.full_like(place.directions, 1.0) + place.directions)[0]
    shifted = draw_normal(40, len(turned[0])).expand(C, -1, -1) + 0.5
    for directions, earlier in ((place.directions, place.earlier), (turned, shifted)):
        place = replace(place, directions=directions, earlier=earlier)
        drawn = state.sweeps.numbers(150, C, Streams(1).noise, states=False)
        place, _, _ = state.sweeps.advance(place, drawn)
    results = [place.sigma[:, 0], place.sigma[:, 1] if second == "level_sd" else place.phi[:, 0]]
    scales = built.structure.scales
    x = torch.linspace(0.01, scales[0].upper, POINTS, dtype=F64)
    y = torch.linspace(0.01, scales[1].upper, POINTS, dtype=F64)
    if second == "ar_1":
        y = torch.linspace(-0.995, 0.995, POINTS, dtype=F64)
    pairs = torch.cartesian_prod(x, y)
    theta = pairs
    if second == "ar_1":
        fixed_scale = torch.full_like(pairs[:, :1], scales[1].guess)
        theta = torch.cat([pairs[:, :1], fixed_scale, pairs[:, 1:]], 1)
    design = built.design(data.series)
    log = filter_system(built.system(theta, design), design.y, design.seen.tolist()).log_density
    for j, scale in enumerate(scales[: 2 if second == "level_sd" else 1]):
        sigma = theta[:, j]
        log = log - (scale.df + 1) * sigma.log() - scale.df * scale.guess**2 / (2 * sigma**2)
    p = (log - log.max()).exp().view(POINTS, POINTS)
    p_values = []
    for axis, (values, grid) in enumerate(zip(results, (x, y), strict=True)):
        cells = (p.sum(1 - axis) / p.sum()).numpy()
        exact = np.interp(values.numpy(), grid.numpy(), cells.cumsum() - 0.5 * cells)
        p_values.append(stats.kstest(exact, "uniform").pvalue)
    assert min(p_values) < 1e-6 if broken else min(p_values) > 1e-3


def test_directions_are_the_principal_axes_of_enough_draws():
    _, _, state = setup("local_level")
    z = draw_normal(500, 2) @ double([[1.0, 0.9], [0.0, 0.1]])
    assert learn_directions(state.place, z[:39].unsqueeze(1)) is state.place
    learned = learn_directions(state.place, z.unsqueeze(1))
    direction = learned.directions[0]
    assert torch.allclose(direction.mT @ direction, z.mT.cov(correction=0), rtol=1e-6)
    assert abs(float(direction[0] @ direction[1])) < 1e-9
    places = learned.earlier[0] @ direction
    assert torch.allclose(places[[0, -1]], z[[0, -1]])
    assert len(places) == 256
