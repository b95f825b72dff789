import math

import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import advance, classes, component, real, train
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from runner.execution.rng import Streams

MLP = component("model", "mlp", widths=[5], activation="tanh")


def ensemble(**changes):
    return component("inference", "deep_ensemble", **({"members": 3, "lr": 0.05} | changes))


@pytest.mark.parametrize("descent", [{"optimizer": "sgd", "momentum": 0.5}, {"optimizer": "adam"}])
@pytest.mark.parametrize(
    "problem", [real(batch_size=10), classes(batch_size=10, n_tasks=2)], ids=["real", "classes"]
)
def test_every_member_is_map_from_its_own_start(problem, descent):
    """The observation noise is also separate for every member."""
    state, _ = train(ensemble(**descent), MLP, problem, 0)
    starts = state.weights["theta"].detach().clone()
    assert len({tuple(row.tolist()) for row in starts}) == 3
    ends = train(ensemble(**descent), MLP, problem, 12)[0].weights["theta"].detach()
    for start, end in zip(starts, ends, strict=True):
        rng = Streams(0)
        single = component("inference", "map", lr=0.05, **descent)
        state = single.init(MLP.build(problem, rng), problem, rng)
        network = state.network
        n = len(network.theta)
        with torch.no_grad():
            network.theta.copy_(start[:n])
        state, _ = advance(single, state, problem, rng, 0, 12)
        assert_close(end[:n], network.theta)
        if network.learns_noise:
            assert_close(end[n:], network.log_noise)
            assert end[n:].sum() != pytest.approx(2 * math.log(0.1), abs=1e-3)


def test_starts_are_glorot_networks_with_initial_noise():
    problem = real()
    state, _ = train(ensemble(members=400), MLP, problem, 0)
    theta = state.weights["theta"].detach()
    # 3 inputs, 5 units
    w = theta[:, :15]
    log_noise = theta[:, -2:]
    assert torch.equal(log_noise, torch.full_like(log_noise, math.log(0.1)))
    assert 0.99 * math.sqrt(6 / 8) < w.abs().max() <= math.sqrt(6 / 8)


def test_predictive_is_mean_of_members():
    problem = classes()
    inference = ensemble()
    state, rng = train(inference, MLP, problem, 30)
    posterior = inference.posterior(state)
    x = problem.test.x
    members = [
        posterior.model.predictive(theta[None], x).probs
        for theta in state.weights["theta"].detach()
    ]
    expected = (members[0] + members[1] + members[2]) / 3
    assert_close(posterior.predict(x, rng.evaluation).probs, expected)
    probs_before = posterior.predict(x, rng.evaluation).probs
    state, _ = advance(inference, state, problem, rng, 30, 33)
    # training continues without interruption
    assert torch.equal(probs_before, posterior.predict(x, rng.evaluation).probs)


def test_expectation_selects_attacked_members():
    """single_draw follows the first member, fresh_draws newly drawn members, and predictive their
    mean."""
    problem = classes()
    state, _ = train(ensemble(), MLP, problem, 30)
    posterior = ensemble().posterior(state)
    x = problem.test.x
    y = problem.test.y

    def gradient(expectation, seed=0):
        victim = Attacked(posterior, problem.bounds, expectation)
        return victim.input_gradient(x, y, generator(seed))

    def member_gradient(rows):
        point = x.clone().requires_grad_()
        probs = posterior.model.predictive(posterior.theta[rows], point).probs
        return torch.autograd.grad(probs.gather(-1, y[..., None]).log().sum(), point)[0]

    assert_close(gradient("single_draw"), member_gradient([0]))
    assert_close(gradient("predictive"), member_gradient([0, 1, 2]))
    fresh = torch.randint(3, (4,), generator=generator(5))
    assert_close(gradient("fresh_draws", 5), member_gradient(fresh))
    assert not torch.allclose(gradient("single_draw"), gradient("predictive"))


def test_other_models_support_members():
    for model in (component("model", "bnn", widths=[4]), component("model", "logistic_regression")):
        problem = classes(n_classes=2)
        assert train(ensemble(), model, problem, 2)[0].weights["theta"].shape[0] == 3
