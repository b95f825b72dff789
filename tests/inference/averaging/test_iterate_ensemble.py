"""Ensemble of iterates: predictions are averaged instead of weights, iterates are stored unchanged,
and resumed runs are bit-identical."""

import copy

import pytest
import torch
from support.small.small_nets import (
    MLP,
    SMALL_LSTM,
    SMALL_TRANSFORMER,
    SMALL_VGG,
    check_resumed,
    images,
    texts,
)
from support.small.small_problems import component, real, train
from torch.testing import assert_close

from components.inference.point.descent import descend
from components.maths.optimizers import SGD
from runner.execution.rng import Streams

KEYS = {"burn_in": 6, "every": 3, "lr": 0.1, "collect_lr": 0.05}


def ensemble(**changes):
    return component("inference", "iterate_ensemble", **(KEYS | changes))


def iterates(model, problem, steps, chosen):
    """Networks after the selected steps of a descent with the same rates."""
    rng = Streams(0)
    method = ensemble()
    network = model.build(problem, rng)
    optimizer = SGD(network.parameters(), 1.0, 0.9)
    out = []
    for t, batch in problem.batches("minibatch", rng, 0, steps):
        optimizer.settings["lr"] = method.rate_at(t - 1)
        descend(network, optimizer, batch, rng.noise)
        if t in chosen:
            out.append(copy.deepcopy(network).train(False))
    return out


@pytest.mark.parametrize(
    ("model", "problem"), [(SMALL_VGG, images()), (SMALL_LSTM, texts())], ids=["vgg", "lstm"]
)
def test_prediction_is_mean_over_iterates(model, problem):
    networks = iterates(model, problem, 16, (9, 12, 15))
    state, rng = train(ensemble(), model, problem, 16)
    prediction = ensemble().posterior(state).predict(problem.test.x, rng.evaluation)
    expected = torch.stack([network(problem.test.x).softmax(-1) for network in networks]).mean(0)
    assert_close(prediction.probs, expected)
    averaged = copy.deepcopy(networks[0])
    for parts in zip(*(network.parameters() for network in [averaged, *networks]), strict=True):
        parts[0].data = torch.stack(parts[1:]).mean(0)
    assert (averaged(problem.test.x).softmax(-1) - expected).detach().abs().max() > 1e-6


def test_real_labels_are_mixture_with_noise_per_iterate():
    problem = real(batch_size=10)
    networks = iterates(MLP, problem, 13, (9, 12))
    prediction = (
        ensemble()
        .posterior(train(ensemble(), MLP, problem, 13)[0])
        .predict(problem.test.x, torch.Generator())
    )
    for k, network in enumerate(networks):
        assert_close(prediction.mu[k], network(problem.test.x)[..., 0])
        assert_close(prediction.v[k, 0], network.log_noise.exp())


def test_posterior_without_iterates_is_current_network():
    problem = images()
    state, rng = train(ensemble(), SMALL_VGG, problem, 13)
    posterior = ensemble().posterior(state)
    assert len(posterior.networks) == 2
    assert posterior.some(1, None).networks == posterior.networks[:1]
    assert len(posterior.some(5, rng.evaluation).networks) == 5
    x = problem.test.x[:3].clone().requires_grad_()
    posterior.predict(x, rng.evaluation).log_probs.sum().backward()
    assert (x.grad != 0).any()
    early, _ = train(ensemble(), SMALL_VGG, problem, 4)
    assert len(ensemble().posterior(early).networks) == 1


@pytest.mark.parametrize("model", [SMALL_VGG, SMALL_TRANSFORMER], ids=["vgg", "transformer"])
def test_resumed_run_is_bit_identical(model, tmp_path):
    check_resumed(ensemble(), model, tmp_path)
