"""Terrain-aided navigation compared with literal densities."""

import math

import pytest
import torch
from support.runs.configured import component, double, load
from support.targets.known_targets import z_score
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

MOTION = (2.0, 2.0, 6.0, 0.29, 0.456, 2.3)


def build(compiled=False, **keys):
    problem, rng = load("tan", replicates=2, n_steps=30, **keys)
    return problem, component("model", "tan", compiled=compiled).build(problem, rng), rng


def states(n=5):
    problem, model, rng = build()
    return (
        problem,
        model,
        problem.states[:, :n].expand(2, n, 6).clone()
        + torch.randn(2, n, 6, generator=rng.noise).double(),
    )


def test_motion_is_linear_with_the_printed_covariance():
    problem, model, rng = build()
    x = problem.states[:, :1].expand(2, 4000, 6).clone()
    next_x = model.transition(x, 1, rng.noise)
    A = torch.eye(6).double()
    A[0, 3] = A[1, 4] = A[2, 5] = 0.1
    drive = (next_x - x @ A.T).flatten(0, 1)
    assert z_score(drive, 0.0).abs().max() < 4
    assert (
        z_score(torch.einsum("ni,nj->nij", drive, drive), double(MOTION).square().diag())
        .abs()
        .max()
        < 4.5
    )
    assert_close(model.transition_mean(x, 1), x @ A.T)
    printed = double([4, 4, 36, 0.0841, 0.207936, 5.29])
    assert_close(model.Q, printed.diag())
    law = MultivariateNormal(x @ A.T, printed.diag())
    assert_close(model.log_transition(next_x, x, 1), law.log_prob(next_x))


def test_observations_are_gaussian_around_height_and_distance():
    problem, model, x = states()
    y = problem.observations[:, 0]
    law = MultivariateNormal(model.observation_mean(x, 1), 400 * torch.eye(2).double())
    assert_close(model.log_observation(y, x, 1), law.log_prob(y.unsqueeze(1)))
    away = (x[..., :2] - double([-7500.0, 5000.0])).norm(dim=-1)
    assert_close(model.observation_mean(x, 1)[..., 1], away)
    at_mean = model.log_observation(model.observation_mean(x, 1)[:, 0], x[:, :1], 1)
    assert_close(at_mean, torch.full_like(at_mean, model.log_observation_bound(1)))


@pytest.mark.parametrize("power", [0.5, 1.0, 1.1])
def test_power_integral_equals_that_of_the_density(power):
    _, model, x = states(1)
    grid = torch.linspace(-300, 300, 601).double()
    y = model.observation_mean(x, 1)[0, 0] + torch.cartesian_prod(grid, grid)
    law = MultivariateNormal(model.observation_mean(x, 1)[0, 0], 400 * torch.eye(2).double())
    assert float(model.log_power_integral(x, 1, power)) == pytest.approx(
        math.log(float(law.log_prob(y).mul(power).exp().sum())), abs=1e-8
    )


def test_cached_predictions_match_the_requested_states():
    _, model, x = states()
    first = model.observation_mean(x, 1).clone()
    assert model.observation_mean(x, 1) is model.observation_mean(x, 1)
    x[..., 0] += 50.0  # the same tensor with other values
    assert_close(model.observation_mean(x, 1), model._look(x))
    assert not torch.allclose(model.observation_mean(x, 1), first)


def test_derivatives_pass_through_the_compiled_map():
    problem, model, _ = build(compiled=True)
    x = problem.states[0, 3]

    def h(state):
        return model.observation_mean(state.view(1, 1, 6), 1).view(2)

    step = 1e-3
    slopes = [(h(x + step * e) - h(x - step * e)) / (2 * step) for e in torch.eye(6).double()]
    for jacobian in (
        torch.func.jacrev(h)(x),
        torch.func.jacfwd(h)(x),
        torch.autograd.functional.jacobian(h, x),
    ):
        assert_close(jacobian, torch.stack(slopes, 1), rtol=1e-4, atol=1e-5)


def test_compiled_map_gives_the_same_likelihood():
    _, plain, x = states()
    _, fast, _ = build(compiled=True)
    y = plain.observation_mean(x, 1)[:, 0] + 10
    assert_close(
        fast.log_observation(y, x, 1), plain.log_observation(y, x, 1), rtol=1e-7, atol=1e-7
    )
