"""Attacks with and without the expectation over draws of a posterior that redraws at each
prediction."""

import dataclasses

import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import classes, component, train

from components.attackers.attacked import FRESH, Attacked

VICTIMS = {
    "mc_dropout": ("mlp", {"widths": [6], "dropout": 0.3}, {}),
    "mean_field_vi": ("mlp", {"widths": [6]}, {"initial_std": 0.5}),
    "dsvi": ("igp", {"posterior": "sparse", "n_inducing": 10}, {}),
}


@pytest.fixture(scope="module", params=VICTIMS)
def victim(request):
    name, model, options = VICTIMS[request.param]
    problem = classes()
    method = component("inference", request.param, lr=0.01, **options)
    state, _ = train(method, component("model", name, **model), problem, 30)
    return problem, method.posterior(state)


def gradient(victim, expectation, seed):
    problem, posterior = victim
    attacked = Attacked(posterior, problem.bounds, expectation)
    return attacked.input_gradient(problem.test.x, problem.test.y, generator(seed))


def test_single_draw_is_fixed_across_steps(victim):
    assert torch.equal(gradient(victim, "single_draw", 1), gradient(victim, "single_draw", 2))
    problem, posterior = victim
    single = posterior.some(1, None).predict(problem.test.x, torch.Generator())
    assert single.logits.shape[0] == 1
    reference = dataclasses.replace(posterior, n_predict=1).predict(problem.test.x, generator(0))
    # a draw of the posterior, not another network
    assert torch.equal(single.logits, reference.logits)


def test_fresh_draws_differ_between_steps(victim):
    first, second = (gradient(victim, "fresh_draws", seed) for seed in (1, 2))
    assert not torch.allclose(first, second)
    few = victim[0], dataclasses.replace(victim[1], n_predict=FRESH)
    assert torch.equal(first, gradient(few, "predictive", 1))


def test_more_draws_reduce_gradient_variance(victim):
    """The variance over random draws falls as their number grows."""
    spread = {
        name: float(torch.stack([gradient(victim, name, seed) for seed in range(20)]).var(0).mean())
        for name in ("predictive", "fresh_draws", "single_draw")
    }
    assert spread["single_draw"] < 1e-20 < spread["predictive"] < 0.5 * spread["fresh_draws"]


def test_success_is_judged_by_all_draws(victim):
    problem, posterior = victim
    x = problem.test.x
    y = problem.test.y
    attacked = Attacked(posterior, problem.bounds, "single_draw")
    expected = posterior.predict(x, generator(3)).probs.argmax(-1) != y
    assert torch.equal(attacked.broken(x, y, generator(3)), expected[:, 0])
