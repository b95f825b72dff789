"""The closed-form gradient of dense networks, compared with autograd and differences, and networks
that do not offer it."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import build_model, generator, normal
from support.small.small_nets import SMALL_BNN, images
from support.small.small_problems import classes, component, real
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.capabilities import ClosedFormScore
from components.inference.log_joint import (
    has_score,
    log_joint,
    log_joint_gradient,
    value_and_gradient,
)
from components.models.networks import dense_network
from components.models.networks.activations import ACTIVATION_FUNCTIONS
from components.models.networks.dense_network import DenseNetwork
from components.models.own.begun import InitialisedDenseNetwork, InitialisedNetwork
from runner.execution.rng import Streams

PROBLEMS = {
    "real": real(n=11),  # two tasks, with missing labels
    "real, one task": real(n=11, n_tasks=1, missing=0.0),
    "binary": classes(n=11, n_classes=2),
    "classes, two tasks": classes(n=12, n_tasks=2),  # with missing labels
}
MLP = {
    "widths": [5, 4],
    "activation": "tanh",
    "prior_std": 0.7,
    "noise_init": 0.3,
    "noise_spread": 1.5,
}
BNN = SMALL_BNN | {"widths": [5, 4], "scaling": "fan_in"}


def by_autograd(model, theta, batch):
    theta = theta.detach().clone().requires_grad_()
    value = log_joint(model, theta, batch)
    return value.detach(), grad(value.sum(), theta)[0]


def agrees(name, problem, options, batch=None):
    """Check that values and gradients of six particles equal autograd up to rounding, separately
    for each row."""
    model = build_model(name, problem, **options)
    assert isinstance(model, ClosedFormScore)
    assert has_score(model)
    theta = model.sample_prior(6, generator(1))
    batch = replace(problem.train, scale=455 / 100) if batch is None else batch
    value, gradient = value_and_gradient(model, theta, batch)
    expected, slope = by_autograd(model, theta, batch)
    assert_close(value, expected, rtol=1e-10, atol=0)
    assert_close(gradient, slope, rtol=1e-10, atol=1e-12 * float(slope.abs().max()))
    assert torch.equal(log_joint_gradient(model, theta, batch), gradient), (
        "asking for no value leaves the gradient as it is"
    )
    assert not gradient.requires_grad
    return model


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("activation", ACTIVATION_FUNCTIONS)
def test_gradients_equal_autograd(activation, problem):
    for noise in ("learned", 0.4):
        agrees("mlp", problem, MLP | {"activation": activation, "noise": noise})
        agrees("bnn", problem, BNN | {"activation": activation, "noise": noise})


@pytest.mark.parametrize("widths", [[], [5], [1], [5, 1, 3], [1, 1]], ids=str)
@pytest.mark.parametrize(
    "problem", [PROBLEMS["real, one task"], PROBLEMS["real"]], ids=["one output", "two"]
)
def test_gradients_equal_autograd_at_any_depth(problem, widths):
    agrees("mlp", problem, MLP | {"widths": widths, "activation": "leaky_relu"})
    x = normal(generator(2), 6, *problem.train.x.shape)
    # inputs of their own
    agrees("mlp", problem, MLP | {"widths": widths}, replace(problem.train, x=x, scale=2.3))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("mlp", MLP | {"noise": "learned", "noise_spread": spread}) for spread in (None, 0.5)),
        *(
            ("bnn", BNN | {"precision": precision, "scaling": scaling})
            for precision in ("learned", "fixed")
            for scaling in ("none", "fan_in")
        ),
        ("mbnn2", {"widths": [3]}),
        ("mbnn3", {"widths": [3, 4]}),
    ],
)
def test_priors_and_multi_task_networks_equal_autograd(name, options):
    """Flat and informative priors of the noise, and all priors of the Bayesian network."""
    agrees(name, PROBLEMS["real"], options)


@pytest.mark.parametrize("name", ["mlp", "bnn"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("noise", ["learned", 0.4])
@pytest.mark.parametrize("row_inputs", ["all", "own"])
def test_networks_in_blocks_equal_one_batch(monkeypatch, name, problem, noise, row_inputs):
    """Batches of one, four and all six networks give the same results, on shared rows and on
    separate rows."""
    keys = MLP if name == "mlp" else BNN
    model = build_model(name, problem, **keys | {"noise": noise})
    theta = model.sample_prior(6, generator(1))
    batch = problem.train
    if row_inputs == "own":
        batch = replace(batch, x=batch.x + torch.arange(6.0).double()[:, None, None])
    of_one = 5 * batch.x.shape[-2] * batch.x.element_size()
    whole = model.score(theta, batch, True)
    for size in (1, 4 * of_one):
        monkeypatch.setattr(dense_network, "CACHE", size)
        assert_close(model.score(theta, batch, True), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_empty_batch_leaves_the_prior(name):
    problem = PROBLEMS[name]
    model = agrees("mlp", problem, MLP, problem.train.part(slice(0), 1.0))
    theta = model.sample_prior(2, generator(1))
    value, _ = value_and_gradient(model, theta, problem.train.part(slice(0), 1.0))
    assert_close(value, model.log_prior(theta))


def test_missing_labels_can_have_any_value():
    problem = PROBLEMS["classes, two tasks"]
    model = build_model("mlp", problem, **MLP)
    theta = model.sample_prior(3, generator(1))
    batch = problem.train
    other = replace(batch, y=torch.where(batch.mask, batch.y, -1))
    ours, theirs = (value_and_gradient(model, theta, b) for b in (other, batch))
    assert_close(ours, theirs, rtol=0, atol=0)


def test_inputs_are_not_modified():
    problem = PROBLEMS["real, one task"]
    model = build_model("mlp", problem, **MLP)
    theta = model.sample_prior(3, generator(1))
    batch = problem.train
    originals = theta.clone(), batch.x.clone(), batch.y.clone()
    value_and_gradient(model, theta, batch)
    assert_close(originals, (theta, batch.x, batch.y), rtol=0, atol=0)


def test_convolutions_and_learned_priors_use_autograd():
    shown = images()
    cnn = component("model", "cnn", channels=[2], widths=[3])
    network = cnn.build(shown, Streams(0))
    assert ClosedFormScore not in cnn.capabilities()
    assert not isinstance(network, ClosedFormScore)
    assert not isinstance(InitialisedNetwork(network, 0.0), ClosedFormScore)
    theta = network.sample_prior(2, generator(1))
    assert_close(
        value_and_gradient(network, theta, shown.train), by_autograd(network, theta, shown.train)
    )
    for options in ({"prior_std": "learned"}, {"biases": "point"}):
        mlp = component("model", "mlp", **options)
        assert ClosedFormScore not in mlp.capabilities()
        assert not isinstance(mlp.build(PROBLEMS["real"], Streams(0)), ClosedFormScore)
    assert ClosedFormScore in component("model", "mlp").capabilities()


def test_initialised_network_keeps_the_closed_form():
    problem = PROBLEMS["real"]
    network = build_model("mlp", problem, **MLP)
    begun = InitialisedDenseNetwork(network, 0.1)
    assert isinstance(network, DenseNetwork)
    assert isinstance(begun, ClosedFormScore)
    theta = network.sample_prior(2, generator(1))
    ours, theirs = (value_and_gradient(n, theta, problem.train) for n in (begun, network))
    assert_close(ours, theirs, rtol=0, atol=0)
