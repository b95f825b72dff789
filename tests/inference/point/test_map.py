import math
from functools import partial

import pytest
import torch
from support.runs.configured import F64
from support.small.small_problems import advance, classes, component, linear_posterior, real, train
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.testing import assert_close

from runner.execution.rng import Streams


def loss_of(network, batch):
    """−(N/B Σ_b log p(y_b|x_b, θ) + log p(θ)) / N, from the log-density over flat parameters."""
    theta = torch.cat([network.theta, network.log_noise])[None]
    log_joint = (
        batch.scale * network.log_likelihood(theta, batch).sum() + network.log_prior(theta)[0]
    )
    return -log_joint / (batch.scale * len(batch.x))


def train_in_torch(optimizer, problem, model, steps, falling=0):
    """Parameters after steps of an optimizer from ``torch.optim``, and its learning rates."""
    rng = Streams(0)
    rates = []
    network = model.build(problem, rng)
    descent = optimizer(network.parameters())
    schedule = CosineAnnealingLR(descent, T_max=9, eta_min=0.02)
    for step, batch in problem.batches("minibatch", rng, 0, steps):
        rates.append(descent.param_groups[0]["lr"])
        descent.zero_grad()
        loss_of(network, batch).backward()
        descent.step()
        if step <= falling:
            schedule.step()
    return list(network.parameters()), rates


@pytest.mark.parametrize(
    ("keys", "optimizer"),
    [
        ({"optimizer": "sgd", "momentum": 0.0}, partial(SGD, lr=0.05)),
        ({"optimizer": "sgd", "momentum": 0.5}, partial(SGD, lr=0.05, momentum=0.5)),
        ({"optimizer": "adam"}, partial(Adam, lr=0.05)),
    ],
)
def test_steps_match_torch(keys, optimizer):
    problem = real(batch_size=10)
    model = component("model", "mlp", widths=[4], activation="tanh")
    state, _ = train(component("inference", "map", lr=0.05, **keys), model, problem, 3)
    assert_close(list(state.network.parameters()), train_in_torch(optimizer, problem, model, 3)[0])


def ridge(lam, sigma2, penalised):
    """The result of ``map`` for a linear network, and the closed form (XᵀX/σ² + I/s²)⁻¹ Xᵀy/σ²."""
    problem = real(n_tasks=1, missing=0.0)
    model = component("model", "mlp", widths=[], prior_std=1 / math.sqrt(lam), noise=sigma2)
    inference = component("inference", "map", optimizer="sgd", lr=0.02, momentum=0.9)
    state, rng = train(inference, model, problem, 0)
    if not penalised:
        state.network.penalty = lambda: torch.zeros((), dtype=F64)
    state, _ = advance(inference, state, problem, rng, 0, 1500)
    exact, _ = linear_posterior(problem, sigma2, 1 / lam)
    return float((state.network.theta.detach() - exact[:, 0]).abs().max())


def test_linear_network_reaches_ridge_solution():
    assert ridge(lam=20.0, sigma2=0.5, penalised=True) < 1e-8
    # without the prior the results must differ
    assert ridge(lam=20.0, sigma2=0.5, penalised=False) > 0.05


def test_l2_and_gaussian_prior_train_identically():
    problem = classes(batch_size=16)
    inference = component("inference", "map")
    l2 = component("model", "mann3", widths=[8, 8], l2=0.01)
    prior = component("model", "mbnn3", widths=[8, 8], prior_std=math.sqrt(1 / (0.02 * problem.n)))
    ends = [train(inference, model, problem, 30)[0].network.theta for model in (l2, prior)]
    assert torch.equal(*ends)


def _pieces():
    return component("inference", "map"), component("model", "mlp", widths=[4])


def test_posterior_is_frozen_and_differentiable_in_x():
    problem = classes(batch_size=16)
    state, rng = train(*_pieces(), problem, 3)
    inference = _pieces()[0]
    posterior = inference.posterior(state)
    log_probs_before = posterior.predict(problem.test.x, rng.evaluation).log_probs
    state, _ = advance(inference, state, problem, rng, 3, 6)
    assert torch.equal(
        log_probs_before, posterior.predict(problem.test.x, rng.evaluation).log_probs
    )
    x = problem.test.x.clone().requires_grad_()
    log_prob = posterior.predict(x, rng.evaluation).log_prob(problem.test.y).sum()
    assert torch.autograd.grad(log_prob, x)[0].abs().sum() > 0
    assert not any(p.requires_grad for p in posterior.network.parameters())


def test_cosine_schedule_matches_torch():
    """Half a cosine from lr to final_lr, then constant."""
    problem = real(batch_size=8)
    _, model = _pieces()
    keys = {"optimizer": "sgd", "lr": 0.1, "schedule": "cosine", "anneal_steps": 9}
    method = component("inference", "map", final_lr=0.02, **keys)
    state, _ = train(method, model, problem, 12)
    optimizer = partial(SGD, lr=0.1, momentum=0.9)
    parameters, rates = train_in_torch(optimizer, problem, model, 12, falling=9)
    assert_close(list(state.network.parameters()), parameters)
    assert [method.rate_at(t) for t in range(12)] == pytest.approx(rates)
    assert rates[-3:] == pytest.approx([0.02] * 3)


def test_dropout_acts_only_in_training_on_request():
    problem = classes(batch_size=16)
    model = component("model", "mlp", widths=[8], dropout=0.5)
    plain, dropped = (
        train(component("inference", "map", dropout=key), model, problem, 4)
        for key in ("ignored", "training")
    )
    assert not torch.allclose(plain[0].network.theta, dropped[0].network.theta)
    without = train(
        component("inference", "map"), component("model", "mlp", widths=[8]), problem, 4
    )[0]
    assert torch.equal(plain[0].network.theta, without.network.theta)
    posterior = component("inference", "map", dropout="training").posterior(dropped[0])
    x = problem.test.x
    rng = dropped[1]
    assert torch.equal(
        posterior.predict(x, rng.evaluation).logits, posterior.predict(x, rng.evaluation).logits
    )
