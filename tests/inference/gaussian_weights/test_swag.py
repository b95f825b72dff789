"""SWAG: moments of the iterates of plain descent, and draws with the published covariance."""

import pytest
import torch
from support.runs.configured import generator, normal
from support.small.small_nets import MLP, SMALL_LSTM, SMALL_VGG, check_resumed, images
from support.small.small_problems import classes, component, real, train
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.inference.gaussian_weights.swag import SwagGaussian, SwagPosterior
from components.inference.log_joint import value_and_gradient
from runner.execution.rng import Streams


def swag(**changes):
    return component(
        "inference", "swag", **({"burn_in": 5, "every": 3, "rank": 3, "momentum": 0.0} | changes)
    )


def points(problem, steps, lr=0.01, collect_lr=0.03, burn_in=5):
    """The path of plain gradient descent, [steps, P]."""
    rng = Streams(0)
    model = MLP.build(problem, rng)
    theta = model.initial(1, rng.init)
    out = []
    for t, batch in problem.batches("minibatch", rng, 0, steps):
        gradient = value_and_gradient(model, theta, batch)[1]
        theta = theta + (lr if t <= burn_in else collect_lr) * gradient / problem.n
        out.append(theta[0])
    return torch.stack(out)


def test_moments_match_literal_means_over_descent():
    problem = real(batch_size=10)
    state, _ = train(swag(collect_lr=0.03), MLP, problem, 22)
    way = points(problem, 22)
    kept = way[[7, 10, 13, 16, 19]]  # steps 8, 11, 14, 17, 20
    assert state.n == 5
    assert_close(state.mean, kept.mean(0))
    assert_close(state.square, kept.square().mean(0))
    deviations = torch.stack([kept[i] - kept[: i + 1].mean(0) for i in (2, 3, 4)])
    assert_close(state.deviations, deviations)
    posterior = swag().posterior(state)
    assert_close(posterior.std.square(), kept.var(0, correction=0))


def test_draws_have_covariance_of_equation_1():
    g = generator(0)
    mean, std, deviations = (normal(g, *shape) for shape in ((3,), (3,), (4, 3)))
    std = std.abs()
    posterior = SwagPosterior(mean, std, deviations, MLP.build(real(), Streams(0)), n_predict=10)
    theta = posterior.draw(200_000, generator(1))
    expected = 0.5 * std.square().diag() + deviations.T @ deviations / (2 * 3)
    centred = theta - mean
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)
    assert (z_score(products, expected)).abs().max() < 4.5
    assert (centred.mean(0) / (expected.diagonal() / 200_000).sqrt()).abs().max() < 4.5
    reference = SwagPosterior(mean, std, deviations[:1], posterior.model, n_predict=10).draw(
        200_000, generator(2)
    )
    assert_close(reference.var(0), 0.5 * std.square(), rtol=0.03, atol=0)


def test_posterior_without_points_is_current_network():
    problem = classes()
    state, rng = train(swag(burn_in=50), MLP, problem, 4)
    posterior = swag(n_predict=3).posterior(state)
    x = problem.test.x
    expected = state.model.predictive(state.network["theta"].detach(), x).probs
    assert_close(posterior.predict(x, rng.evaluation).probs, expected)


def test_predictions_mix_draws_of_noise():
    problem = real()
    state, rng = train(swag(), MLP, problem, 30)
    posterior = swag(n_predict=7).posterior(state)
    x = problem.test.x
    prediction = posterior.predict(x, rng.at("evaluation", 0))
    theta = posterior.draw(7, rng.at("evaluation", 0))
    assert_close(prediction.mu, state.model.predictive(theta, x).mu)
    assert_close(prediction.v[:, 0], theta[:, -2:].exp())
    assert posterior.some(3, rng.evaluation).predict(x, rng.evaluation).mu.shape[0] == 3


def annealed_swag(**changes):
    return swag(**({"schedule": "cosine", "lr": 0.1, "momentum": 0.9, "n_predict": 3} | changes))


def test_network_is_drawn_whole_with_new_statistics():
    """Moments equal the moments of ``swa`` on the same path; every draw has its own statistics and
    does not change."""
    problem = images()
    method = annealed_swag()
    state, rng = train(method, SMALL_VGG, problem, 16)
    path = component("inference", "swa", lr=0.1, momentum=0.9, collect_lr=0.01, burn_in=5, every=3)
    assert_close(state.mean, train(path, SMALL_VGG, problem, 16)[0].mean)
    posterior = method.posterior(state)
    std = (state.square - state.mean.square()).clamp_min(0).sqrt()
    generator = torch.Generator().manual_seed(state.seed)
    theta = SwagGaussian(state.mean, std, state.deviations).draw(3, generator)
    for network, row in zip(posterior.networks, theta, strict=True):
        assert_close(torch.cat([p.flatten() for p in network.parameters()]), row)
        repeat = SMALL_VGG.build(problem, Streams(0))
        for mine, its in zip(repeat.parameters(), network.parameters(), strict=True):
            mine.data = its.data
        repeat.gather(list(problem.train.x.split(8)))
        for mine, its in zip(repeat.statistics(), network.statistics(), strict=True):
            assert_close(mine, its)
    x = problem.test.x
    logits = posterior.predict(x, rng.evaluation).logits
    assert logits.shape[0] == 3
    assert torch.equal(logits, posterior.predict(x, rng.evaluation).logits)
    assert len(method.posterior(train(method, SMALL_VGG, problem, 4)[0]).networks) == 1


@pytest.mark.parametrize("model", [SMALL_VGG, SMALL_LSTM], ids=["vgg", "lstm"])
def test_resumed_network_is_bit_identical(model, tmp_path):
    check_resumed(annealed_swag(), model, tmp_path)
