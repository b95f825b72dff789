"""Minibatch gradients: unbiased with any control variate, less noisy near the mode; and the bias of
chains."""

from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

import pytest
import torch
from support.runs.configured import component, generator, normal
from support.small.small_problems import check_resumed, classes, noisy_sines, tensors
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc import control_variates
from runner.execution.rng import Streams

GRADIENTS = ["plain", "control_variate", "svrg"]


def make_problem(model_name, n):
    """Rows for a model with a gradient by autograd, or for a model with a score in closed form."""
    linear = model_name == "linear_regression"
    return noisy_sines(n) if linear else classes(n=n, n_classes=2, n_inputs=3)


def begin(problem, model_name, gradient, name="sgld", **keys):
    """A method, its model and its state, with its reference set."""
    options = {"noise": 0.5} if model_name == "linear_regression" else {}
    rng = Streams(0)
    model = component("model", model_name, **options).build(problem, rng)
    inference = component("inference", name, gradient=gradient, chains=3, **keys)
    return inference, model, move_reference(inference, inference.init(model, problem, rng))


def move_reference(inference, state, theta=None):
    """A state with its reference point at the chains, or at θ."""
    point = state.theta if theta is None else theta
    return replace(state, control=inference.refresh_reference(state.control, state.model, point, 0))


def pick_rows(problem, rows):
    whole = problem.train
    return Batch(whole.x[rows], whole.y[rows], whole.mask[rows], problem.n / len(rows))


# the estimates
@pytest.mark.parametrize("gradient", GRADIENTS)
def test_mean_over_all_batches_is_full_gradient(gradient):
    problem = noisy_sines(7)
    inference, model, state = begin(problem, "linear_regression", gradient)
    theta = state.theta + 0.3
    pairs = [pick_rows(problem, list(rows)) for rows in combinations(range(problem.n), 2)]
    estimates = [inference.estimate(state.control, model, theta, batch)[:2] for batch in pairs]
    means = [torch.stack(each).mean(0) for each in zip(*estimates, strict=True)]
    assert_close(means, list(value_and_gradient(model, theta, problem.train)))


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("model_name", ["linear_regression", "logistic_regression"])
def test_control_variate_is_unbiased_and_less_noisy(model_name, gradient):
    problem = make_problem(model_name, 200)
    inference, model, state = begin(problem, model_name, gradient)
    centre = control_variates.mode(model, state.theta[:1], problem.train, 100)
    assert value_and_gradient(model, centre, problem.train)[1].abs().max() < 1e-3
    g = generator(1)
    # about one posterior standard deviation
    theta = centre + 0.05 * normal(g, 3, model.dim)
    if gradient == "svrg":
        state = move_reference(inference, state, centre + 0.05 * normal(g, 3, model.dim))
    exact = value_and_gradient(model, theta, problem.train)[1]
    some = [pick_rows(problem, torch.randperm(200, generator=g)[:10]) for _ in range(600)]
    estimates, plain = (
        torch.stack([estimate(batch)[1] for batch in some])
        for estimate in (
            partial(inference.estimate, state.control, model, theta),
            partial(value_and_gradient, model, theta),
        )
    )
    assert z_score(estimates, exact).abs().max() < 4
    ratio = float(estimates.var(0).sum() / plain.var(0).sum())
    assert ratio == 1 if gradient == "plain" else ratio < 0.15
    # The mutant omits the gradient of all rows at the reference point; it is biased unless that
    # point is a mode.
    if gradient == "svrg":
        assert z_score(estimates - state.control.slope, exact).abs().max() > 4


def test_svrg_refers_to_earlier_state_of_each_chain():
    problem = noisy_sines(20)
    inference, model, state = begin(problem, "linear_regression", "svrg", refresh_every=3)
    rng = Streams(1)
    for t in range(7):
        if t % 3 == 0:
            reference = state.theta
        state, _ = inference.step(state, pick_rows(problem, [t, t + 1]), rng)
        assert_close(state.control.reference, reference)
        assert_close(state.control.slope, value_and_gradient(model, reference, problem.train)[1])


@pytest.mark.parametrize("model_name", ["linear_regression", "logistic_regression"])
@pytest.mark.parametrize("rows", [5, 22, 23, 4096])
def test_full_gradient_may_come_in_parts(monkeypatch, model_name, rows):
    problem = make_problem(model_name, 23)
    _, model, state = begin(problem, model_name, "plain")
    monkeypatch.setattr(control_variates, "ROWS", rows)
    assert_close(
        control_variates.whole_gradient(model, state.theta, problem.train),
        value_and_gradient(model, state.theta, problem.train),
    )


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_noise_estimate_is_unbiased(gradient):
    problem = noisy_sines(6)
    keys = {"noise_estimate": True}
    sghmc, model, state = begin(problem, "linear_regression", gradient, "sghmc", **keys)
    theta = state.theta + 0.3

    def split(rows):
        return sghmc.split_gradient(state.control, model, theta, pick_rows(problem, list(rows)))

    orders = list(permutations(range(6), 4))
    _, gradients, noise = (torch.stack(each) for each in zip(*map(split, orders), strict=True))
    assert_close(noise.mean(0), gradients.var(0, correction=0))
    batch = pick_rows(problem, list(orders[5]))
    assert_close(gradients[5], sghmc.estimate(state.control, model, theta, batch)[1])
    assert_close(split(range(5)), split(range(4)))  # the fifth row is excluded


def test_single_row_batch_has_no_noise_estimate():
    problem = noisy_sines(6)
    keys = {"noise_estimate": True}
    sghmc, _, state = begin(problem, "linear_regression", "plain", "sghmc", **keys)
    with pytest.raises(ConfigMismatchError, match=r"batch of 1 row .*; raise dataset.batch_size"):
        sghmc.step(state, pick_rows(problem, [0]), Streams(0))


# chains on minibatches


# resumed runs
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("sgld", {"gradient": "control_variate", "schedule": "cyclical"}),
        ("sgld", {"gradient": "svrg", "refresh_every": 4}),
        ("sghmc", {"gradient": "svrg", "refresh_every": 4, "noise_estimate": True}),
        ("recipe", {"dynamics": "thermostat", "metric": "potential", "noise_estimate": True}),
        ("sgd_momentum", {"resample_every": 3}),
        ("psgld", {"correction": True}),
        ("psgld", {"gradient": "control_variate", "adapt": "always"}),
        ("adam_noise", {}),
    ],
)
@pytest.mark.parametrize("stop", [3, 10])
def test_resumed_is_bit_identical(tmp_path, name, keys, stop):
    problem = noisy_sines(24, batch_size=6)
    model = component("model", "linear_regression")
    small = {"chains": 3, "burn_in": 6, "thinning": 2, "step_size": 0.001}
    inference = component("inference", name, **keys | small)
    state = check_resumed(inference, model, problem, tmp_path, 15, stop)
    assert all(t.shape[0] != problem.n for t in tensors(state)), "checkpoints leave the data out"
