"""Draws of the states compared exactly with the dense Gaussian: a draw is linear in its normal
numbers."""

import numpy as np
import pytest
import torch
from support.series.structural_series import F64, block, draw_theta, joint, model, problem

from components.series.structural.compiled.simulation_smoother import (
    StateRandomNumbers,
    SystemMotion,
    build_system,
    kept_values,
    simulate_states,
)

SUMS = {
    "level": ["local_level"],
    "trend and seasons": ["local_linear_trend", block("seasonal", period=5)],
    "rows that change": ["local_level", "dynamic_regression"],
    "returning slope and autoregression": ["semilocal_trend", block("autoregressive", lags=3)],
}


def parts(name, missing=(3, 4, 11), times=12):
    """Arguments of a draw for a small system, two sets of parameters, and the dense joint
    distribution."""
    whole = problem(times, 1, missing)
    built = model(*SUMS[name], of=whole)
    design = built.design(whole.series)
    system = built.system(draw_theta(built), design)
    noisy = tuple(i for i in range(system.W.shape[1]) if float(system.W[0, i]) > 0)
    pattern = (system.G != 0).any(0)
    layout = build_system(design.seen, design.F, system.mean, system.sd, pattern, noisy)
    return layout, design, system, system.W.sqrt()[:, list(noisy)], system.noise.sqrt()


@pytest.mark.parametrize("name", SUMS)
def test_draw_has_the_conditional_mean_and_covariance(name):
    """A draw from zero numbers is the mean; the effects of single numbers make up the
    covariance."""
    layout, design, system, scale, noise = parts(name)
    n, d = layout.F.shape
    k = len(layout.noisy)
    for c in range(2):
        law, mean, C = joint(system, c)
        size = d + (n - 1) * k + n
        unit = torch.cat([torch.zeros(1, size, dtype=F64), torch.eye(size, dtype=F64)])
        first, states, observations = unit.split([d, (n - 1) * k, n], 1)
        drawn = StateRandomNumbers(
            first.numpy(), states.unflatten(1, (n - 1, k)).numpy(), observations.numpy()
        )
        rows = (kept_values(layout, system.G[c]), scale[c].numpy(), noise[c].numpy())
        motion = SystemMotion(*(np.tile(x, (size + 1, 1)) for x in rows))
        y = np.tile((design.y - system.offset[c]).numpy(), (size + 1, 1))
        alpha = torch.from_numpy(simulate_states(y, layout, motion, drawn))
        is_observed = design.seen
        both = torch.einsum("sitj,tj->sit", C, system.F).flatten(0, 1)[:, is_observed]
        gain = torch.linalg.solve(law.covariance_matrix[is_observed][:, is_observed], both.T).T
        exact = mean.flatten() + gain @ (design.y - law.mean)[is_observed]
        assert torch.allclose(alpha[0].flatten(), exact, rtol=1e-9, atol=1e-9)
        J = (alpha[1:] - alpha[0]).flatten(1)
        assert torch.allclose(
            J.T @ J, C.reshape(n * d, n * d) - gain @ both.T, rtol=1e-8, atol=1e-9
        )
