"""Training under noise: literal steps, the limit of no noise, and larger certificates."""

import torch
from smoothed_networks import MLP, rest, smoothing, train_smoothed
from support.runs.configured import normal
from support.small.small_problems import classes, component, train
from torch.testing import assert_close

from components.evaluation.security.certificate import certify
from components.posteriors.noisy_votes import SmoothedNetwork
from runner.execution.rng import Streams


# training
def test_two_steps_match_equation():
    """θ := θ − η ∇[−mean log p(y|x + η) − log p(θ)/N] with noise from the noise stream."""
    problem = classes(batch_size=10)
    method = smoothing(optimizer="sgd", momentum=0.0, lr=0.1, sigma=0.3)
    state, rng = train(method, MLP, problem, 0)
    network = state.network
    theta = network.theta.detach().clone()[None]
    other = Streams(0)
    for _, batch in problem.batches("minibatch", rng, 0, 2):
        eta = normal(other.noise, batch.x.shape)
        leaf = theta.clone().requires_grad_()
        fit = network.predictive(leaf, batch.x + 0.3 * eta).log_prob(batch.y).mean()
        loss = -fit - network.log_prior(leaf).sum() / problem.n
        theta = theta - 0.1 * torch.autograd.grad(loss, leaf)[0]
        state, _ = method.step(state, batch, rng)
        assert_close(network.theta.detach(), theta[0])


def test_small_noise_gives_map():
    problem = classes(batch_size=10)
    keys = {"optimizer": "adam", "lr": 0.02}
    plain = train(component("inference", "map", **keys), MLP, problem, 20)[0].network.theta
    noisy = train(smoothing(**keys, sigma=1e-9), MLP, problem, 20)[0].network.theta
    assert_close(noisy, plain, rtol=1e-5, atol=1e-6)


def test_training_noise_certifies_more():
    """With the same noise at prediction, a network trained without noise has smaller radii."""
    problem = classes(n=200, n_inputs=20)
    robust, _ = train_smoothed(problem, 300, sigma=0.5, certificate_draws=1000)
    state, _ = train(component("inference", "map", lr=0.02), MLP, problem, 300)
    fragile = SmoothedNetwork(state.network.requires_grad_(False), **rest(robust))

    def count_certified(posterior):
        rows = [
            certify(problem, posterior, problem.test.y, "l2", eps, Streams(0)).rows.sum()
            for eps in (0.1, 0.3, 0.5)
        ]
        return sum(rows)

    assert count_certified(robust) > count_certified(fragile)
