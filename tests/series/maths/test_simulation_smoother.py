"""Draws of the states against the dense Gaussian, exactly: a draw is linear in its normal
numbers."""

from __future__ import annotations

import pytest
import torch

from components.maths.compiled import loops
from components.series.fast import simulation_smoother as compiled
from components.series.maths.simulation_smoother import (
    Sparse,
    StateLayout,
    StateRandomNumbers,
    in_order,
    simulate_states,
)
from tests.structural_series import F64, block, joint, model, problem, some_theta

SUMS = {
    "level": ["local_level"],
    "trend and seasons": ["local_linear_trend", block("seasonal", period=5)],
    "rows that change": ["local_level", "dynamic_regression"],
    "returning slope and autoregression": ["semilocal_trend", block("autoregressive", lags=3)],
    "no states": [block("regression", expected_size=1.0)],
}


def parts(name, missing=(3, 4, 11), times=12):
    """What a draw asks of a small system, two sets of parameters, and its dense joint law."""
    whole = problem(times, 1, missing)
    built = model(*SUMS[name], of=whole)
    design = built.design(whole.series)
    system = built.system(some_theta(built), design)
    noisy = tuple(i for i in range(system.W.shape[1]) if float(system.W[0, i]) > 0)
    layout = StateLayout(
        design.seen, design.F, system.mean, system.sd, Sparse.of((system.G != 0).any(0)), noisy
    )
    return layout, design, system, system.W.sqrt()[:, list(noisy)], system.noise.sqrt()


def numbers(C, layout, generator=None):
    n, d = layout.F.shape
    shapes = ((C, d), (C, n - 1, len(layout.noisy)), (C, n))
    if generator is None:
        return StateRandomNumbers(*(torch.zeros(shape, dtype=F64) for shape in shapes))
    return StateRandomNumbers(
        *(torch.randn(shape, generator=generator, dtype=F64) for shape in shapes)
    )


@pytest.mark.parametrize("name", list(SUMS)[:-1])
def test_a_draw_has_the_mean_and_covariance_of_the_states_given_y(name):
    """At numbers that are 0 it is the mean; what each number adds makes the covariance."""
    layout, design, system, scale, noise = parts(name)
    (n, d), k = layout.F.shape, len(layout.noisy)
    for c in range(2):
        law, mean, C = joint(system, c)
        size = d + (n - 1) * k + n
        unit = torch.cat([torch.zeros(1, size, dtype=F64), torch.eye(size, dtype=F64)])
        first, states, observations = unit.split([d, (n - 1) * k, n], 1)
        drawn = StateRandomNumbers(first, states.unflatten(1, (n - 1, k)), observations)
        rows = [x[c].expand(size + 1, *x[c].shape) for x in (system.G, scale, noise)]
        y = (design.y - system.offset[c]).expand(size + 1, n)
        alpha, eta = simulate_states(layout, y, *rows, drawn)
        moves = alpha[:, 1:] - (rows[0].unsqueeze(1) @ alpha[:, :-1].unsqueeze(3)).squeeze(3)
        assert torch.allclose(eta, moves[..., list(layout.noisy)], atol=1e-11)
        seen = design.seen
        both = torch.einsum("sitj,tj->sit", C, system.F).flatten(0, 1)[:, seen]
        gain = torch.linalg.solve(law.covariance_matrix[seen][:, seen], both.T).T
        exact = mean.flatten() + gain @ (design.y - law.mean)[seen]
        assert torch.allclose(alpha[0].flatten(), exact, rtol=1e-9, atol=1e-9)
        J = (alpha[1:] - alpha[0]).flatten(1)
        assert torch.allclose(
            J.T @ J, C.reshape(n * d, n * d) - gain @ both.T, rtol=1e-8, atol=1e-9
        )


@pytest.mark.skipif(not loops.available(), reason="numba is not installed")
@pytest.mark.parametrize("name", list(SUMS))
def test_the_compiled_loop_has_the_same_bits(name):
    layout, design, system, scale, noise = parts(name, times=20)
    y = design.y - system.offset
    drawn = numbers(2, layout, torch.Generator().manual_seed(0))
    for ours, theirs in zip(
        simulate_states(layout, y, system.G, scale, noise, drawn),
        compiled.simulate_states(layout, y, system.G, scale, noise, drawn),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


def test_sums_are_taken_in_order():
    x = torch.tensor([1e16, 1.0, -1e16, 1.0], dtype=F64)
    assert float(in_order(x)) == ((1e16 + 1.0) - 1e16) + 1.0
    assert float(in_order(x[:0])) == 0.0
