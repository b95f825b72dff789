"""Networks smoothed by noise, trained and linear ones."""

import torch
from support.small.small_problems import component, train
from torch.testing import assert_close

from components.posteriors.noisy_votes import SmoothedNetwork
from runner.execution.rng import Streams

MLP = component("model", "mlp", widths=[8])


def smoothing(**keys):
    small = {"votes": 40, "selection_draws": 30, "certificate_draws": 400, "lr": 0.02}
    return component("inference", "randomised_smoothing", **(small | keys))


def linear(problem, sigma=0.3, **keys):
    """Smoothed linear classifier of two classes, with its direction w [D] and offset b: f_1 −
    f_0."""
    network = component("model", "mlp", widths=[]).build(problem, Streams(3))
    with torch.no_grad():
        network.theta.mul_(2.0)
    network.requires_grad_(False)
    W, b = network.layers(network.theta)[0]
    draws = {"votes": 50, "selection_draws": 50, "certificate_draws": 2000, "level": 0.01} | keys
    return SmoothedNetwork(network, sigma, **draws), W[1] - W[0], b[1] - b[0]


def distances(x, w, b):
    """Signed distance of each row from the boundary of a linear classifier."""
    return (x @ w + b) / w.norm()


def train_smoothed(problem, steps=150, **keys):
    method = smoothing(**keys)
    state, rng = train(method, MLP, problem, steps)
    return method.posterior(state), rng


def rest(posterior):
    return {key: value for key, value in vars(posterior).items() if key != "network"}


def check_two_steps(method, problem, fit):
    """θ := θ − 0.1 ∇[−fit − log p(θ)/N]; ``fit``: of a network at θ [1, P] to a batch."""
    state, rng = train(method, MLP, problem, 0)
    network = state.network
    theta = network.theta.detach().clone()[None]
    for _, batch in problem.batches("minibatch", rng, 0, 2):
        point = theta.clone().requires_grad_()
        loss = -fit(network, point, batch) - network.log_prior(point).sum() / problem.n
        theta = theta - 0.1 * torch.autograd.grad(loss, point)[0]
        state, _ = method.step(state, batch, rng)
        assert_close(network.theta.detach(), theta[0])
