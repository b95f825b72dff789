"""Counted costs of methods equal counts derived by hand from their algorithms."""

import pytest
import torch
from support.runs.configured import F64, component, load
from support.small.small_games import friend_or_foe, play

from components.contracts.costs.counts import (
    Costs,
    count,
    counting,
)
from components.contracts.costs.meters import metered, metered_density
from components.inference.log_joint import value_and_gradient

STEPS = 5


def counts_of(method, dataset, model, data=None, **keys):
    """Costs of ``init``, and of five subsequent steps; the state, and the information of the
    steps."""
    problem, rng = load(dataset, **(data or {}))
    if problem.kind == "density":
        problem.log_density = metered_density(problem.log_density)
    model_component = component("model", model) if isinstance(model, str) else model
    module = metered(model_component.build(problem, rng))
    inference = component("inference", method, **keys)
    costs = Costs()
    with counting(costs):
        state = inference.init(module, problem, rng)
    start_counts = costs.counts()
    infos = []
    with counting(costs):
        for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, STEPS):
            state, info = inference.step(state, batch, rng)
            infos.append(info)
    steps = {kind: n - start_counts.get(kind, 0) for kind, n in costs.counts().items()}
    return start_counts, steps, state, infos


def funnel_counts(method, **keys):
    return counts_of(method, "funnel", "target_density", **keys)


def equal_counts(n):
    """Equal numbers of gradients and densities."""
    return {"densities": n, "gradients": n}


def test_random_walk_evaluates_each_proposal():
    start_counts, steps, *_ = funnel_counts("random_walk_mh", chains=3)
    assert start_counts == {"densities": 2 * 3}, "where chains start, and its value"
    assert steps == {"densities": STEPS * 3}


def test_mala_evaluates_one_gradient_per_chain():
    assert funnel_counts("mala", chains=3)[1] == equal_counts(STEPS * 3)


def test_hmc_evaluates_gradient_at_each_leapfrog_step():
    keys = {"trajectory": "fixed", "length": 0.7, "step_size": 0.1, "warmup": 0}
    assert funnel_counts("hmc", chains=3, **keys)[1] == equal_counts(STEPS * 3 * 7)


def test_nuts_evaluates_one_gradient_per_tree_node():
    _, steps, state, _ = funnel_counts("nuts", chains=3, step_size=0.2, warmup=0)
    assert steps == equal_counts(int(state.stats["n_steps"].rows.sum()))


def test_uivi_counts_target_but_not_q():
    _, steps, *_ = funnel_counts("uivi", n_samples=4)
    assert steps == equal_counts(STEPS * 4)


def test_importance_sampling_weighs_each_draw_once():
    assert funnel_counts("importance_sampling", chains=8)[1] == {
        "densities": STEPS * 8,
        "gradients": 0,
    }


def test_svgd_evaluates_one_gradient_per_particle():
    start_counts, steps, *_ = funnel_counts("svgd", chains=6)
    assert start_counts == equal_counts(6)
    assert steps == equal_counts(STEPS * 6)


def test_psgld_counts_hessian_vector_product():
    assert funnel_counts("psgld", chains=2, correction=True)[1]["gradients"] == STEPS * 2 * 3


LOGISTIC = {"n_train": 40, "n_test": 10, "batch_size": 8}


@pytest.mark.parametrize("model", ["logistic_regression", "bnn"])
def test_sgld_counts_rows_of_minibatches_too(model):
    """The count holds for a model with a gradient in closed form, and for a network."""
    _, steps, *_ = counts_of("sgld", "logistic_synthetic", model, data=LOGISTIC, chains=3)
    assert steps == equal_counts(STEPS * 3) | {"forwards": STEPS * 3 * 8}


@pytest.mark.parametrize(("gradient", "gradients"), [("reparam", 4), ("reinforce", 0)])
def test_bbvi_counts_its_draws(gradient, gradients):
    estimator = component("gradient", gradient, n_samples=4)
    _, steps, *_ = funnel_counts("bbvi", n_samples=4, family="mean_field", gradient=estimator)
    assert steps == {"densities": STEPS * 4} | (
        {"gradients": STEPS * gradients} if gradients else {}
    )


@pytest.mark.parametrize("name", ["smdgp", "dgp"])
def test_gp_bound_counts_rows_times_draws(name):
    """The bound of ``dgp`` calls ``elbo_rows``, which also counts when it is called directly."""
    data = {"n_train": 12, "n_test": 5}
    model = component("model", name, n_inducing=4)
    _, steps, *_ = counts_of("dsvi", "linear_simulation", model, data=data, n_samples=3)
    assert steps == equal_counts(STEPS * 3) | {"forwards": STEPS * 3 * 12}


def test_particle_filter_counts_moves_and_weights():
    data = {"n_steps": STEPS}
    _, steps, *_ = counts_of(
        "bootstrap_filter", "lgssm", "linear_gaussian_ssm", data=data, particles=16
    )
    assert steps == {"densities": STEPS * 16, "forwards": STEPS * 16}


def test_agent_counts_moves_of_games():
    costs = Costs()
    with counting(costs):
        play(
            friend_or_foe(replicates=3, episodes=STEPS),
            component("inference", "q_learning"),
        )
    assert costs.counts() == {"environment_steps": 3 * STEPS}


def test_plugin_with_own_derivatives_is_counted():
    """The plug-in calls only the density, without helpers of the package, and makes two backward
    passes through one evaluation."""
    problem, _ = load("funnel")
    log_density = metered_density(problem.log_density)
    theta = torch.zeros(4, problem.dim, requires_grad=True, dtype=F64)
    costs = Costs()
    with counting(costs):
        value = log_density(theta)
        for _ in range(2):
            torch.autograd.grad(value.sum(), theta, retain_graph=True)
    log_density(theta).sum().backward()  # evaluation that is not counted
    assert costs.counts() == {"densities": 4, "gradients": 8}


def test_helper_does_not_count_twice():
    problem, rng = load("funnel")
    problem.log_density = metered_density(problem.log_density)
    model = metered(component("model", "target_density").build(problem, rng))
    theta = model.sample_prior(3, rng.init)
    costs = Costs()
    with counting(costs):
        value_and_gradient(model, theta, None)
        count(environment_steps=2)
    count(environment_steps=2)
    assert costs.counts() == {"densities": 3, "gradients": 3, "environment_steps": 2}


def test_user_method_of_same_name_is_not_counted():
    class Own:
        def fit(self, where):
            return f"fitted {where}"

    meter = metered(Own())
    costs = Costs()
    with counting(costs):
        assert meter.fit("there") == "fitted there"
    assert costs.counts() == {}
    assert (type(meter).__name__, isinstance(meter, Own)) == ("Own", True)
