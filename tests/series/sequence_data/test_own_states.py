"""States of each replicate: ``states: own`` of the simulated sequences."""

import pytest
import torch
from support.runs.configured import load
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.scores.filtering import nmse

WIENER_DRIVE = [0.1**3 / 3, 0.1]  # variances of position and velocity, D.3.3
TAN_DRIVE = [4.0, 4.0, 36.0, 0.29**2, 0.456**2, 2.3**2]  # D.3.4
NAMES = ("wiener_velocity", "asymmetric_wiener", "tan")


def drives(name, x):
    """x_t − A x_{t−1} of states [R, T, dx], for t ≥ 2, by the equations of motion."""
    half = x.shape[2] // 2
    after = x[:, 1:].clone()
    after -= x[:, :-1]
    after[..., :half] -= 0.1 * x[:, :-1, half:]
    return after


@pytest.mark.parametrize("name", NAMES)
def test_replicates_have_different_states_with_the_same_law(name):
    problem, _ = load(name, replicates=30, n_steps=200, states="own")
    x = problem.states
    half = x.shape[2] // 2
    assert x.shape[:2] == (30, 200)
    d = drives(name, x)
    variances = TAN_DRIVE if name == "tan" else [v for v in WIENER_DRIVE for _ in range(half)]
    rows = d.flatten(0, 1)
    assert z_score(rows.square(), torch.tensor(variances).to(rows)).abs().max() < 4.5
    between = d[0] * d[1]  # two replicates: independent
    assert z_score(between, torch.zeros_like(between[0])).abs().max() < 4.5
    assert problem.means.shape == problem.observations.shape


@pytest.mark.parametrize("name", NAMES)
def test_means_belong_to_the_states_of_their_replicate(name):
    problem, _ = load(name, replicates=3, n_steps=20, states="own")
    x = problem.states
    if name == "tan":
        x0 = x.new_tensor([-7.5e3, 5e3])
        assert_close(problem.means[..., 1], (x[..., :2] - x0).norm(dim=-1))
    else:
        assert_close(problem.means, x[..., :2])
    by_hand = ((x - 1.0) ** 2).sum(1) / (x**2).sum(1)
    assert_close(nmse(x, torch.ones_like(x)), by_hand)


@pytest.mark.parametrize("name", NAMES)
def test_shared_states_are_the_default_with_one_sequence(name):
    shared = load(name, replicates=3, n_steps=20)[0]
    assert shared.states.shape[0] == 1
    assert torch.equal(shared.states, load(name, replicates=9, n_steps=20)[0].states)


def test_log_variances_follow_their_autoregression():
    keys = {"n_steps": 200, "mu": -0.5, "phi": 0.9, "sigma": 0.3, "states": "own"}
    problem, _ = load("stochastic_volatility", replicates=30, **keys)
    x = problem.states
    assert x.shape == problem.observations.shape == (30, 200, 1)
    drive = x[:, 1:] + 0.5 - 0.9 * (x[:, :-1] + 0.5)
    assert z_score(drive.flatten(0, 1).square(), torch.tensor([0.09]).to(x)).abs().max() < 4.5
    assert z_score(drive[0] * drive[1], torch.zeros(1).to(x)).abs().max() < 4.5
    returns = problem.observations / (x / 2).exp()  # standard normal by its own replicate's x
    assert z_score(returns.flatten(0, 1).square(), torch.ones(1).to(x)).abs().max() < 4.5
    shared = load("stochastic_volatility", replicates=3, n_steps=20)[0]
    assert shared.states.shape == (1, 20, 1)
