import copy
import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator, normal
from support.small.small_problems import (
    classes,
    component,
    linear_posterior,
    real,
    train,
)
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.inference.gaussian_weights.mean_field import MeanField
from components.problems.supervised import Supervised
from runner.execution.rng import Streams


def orthogonal(n=30):
    """Linear regression with orthogonal columns, including the constant, so that its posterior
    factorises."""
    g = generator(0)
    ones = torch.ones(n, 1, dtype=F64)
    q, _ = torch.linalg.qr(torch.cat([ones, normal(g, n, 3)], 1))
    x = q[:, 1:] * double([2.0, 4.0, 6.0])
    w = double([1.0, -0.5, 0.2])
    y = (x @ w)[:, None] + 0.4 + 0.3 * normal(g, n, 1)
    batch = Batch(x, y, torch.ones(n, 1, dtype=torch.bool), 1.0)
    return Supervised("orthogonal", "real", batch, batch, None, task_names=["y"])


LINEAR = component("model", "mlp", widths=[], prior_std=0.8, noise=0.09)


def exact(problem):
    """Mean and standard deviation of w, b given y: precision x_jᵀx_j/σ² + 1/s² for each
    coordinate."""
    mean, precision = linear_posterior(problem, 0.09, 0.64)
    assert (precision - precision.diagonal().diag()).abs().max() < 1e-9
    return mean[:, 0], precision.diagonal() ** -0.5


def distance(estimator):
    """Largest error of q's means, in posterior standard deviations, and of its log standard
    deviations."""
    problem = orthogonal()
    keys = {"lr": 0.01, "estimator": estimator, "n_samples": 20, "initial_std": 0.3}
    inference = component("inference", "mean_field_vi", **keys)
    q = train(inference, LINEAR, problem, 1200)[0].q.requires_grad_(False)
    mean, std = exact(problem)
    errors = (q.network.theta - mean) / std, q.log_std - std.log()
    return [float(error.abs().max()) for error in errors]


@pytest.mark.parametrize("estimator", ["local", "weights"])
def test_mean_field_matches_factorised_posterior(estimator):
    mean_error, std_error = distance(estimator)
    assert mean_error < 0.2
    assert std_error < 0.08


def test_broken_kl_misses_exact_posterior(monkeypatch):
    kl = MeanField.kl
    monkeypatch.setattr(MeanField, "kl", lambda self: -kl(self))
    mean_error, std_error = distance("local")
    assert mean_error > 0.2 or std_error > 0.08


def make_q(problem, widths=(6,), std=0.3):
    rng = Streams(0)
    network = component(
        "model", "mlp", widths=list(widths), activation="relu", prior_std=0.8
    ).build(problem, rng)
    q = MeanField(network, std).requires_grad_(False)
    q.log_std += 0.5 * normal(rng.noise, q.log_std.shape)
    return q, rng


def test_kl_closed_form_matches_monte_carlo():
    q, rng = make_q(real(n_tasks=1), widths=())
    theta = q.draw(200_000, rng.noise)
    log_q = torch.distributions.Normal(q.network.theta, q.log_std.exp()).log_prob(theta).sum(1)
    log_p = torch.distributions.Normal(0.0, 0.8).log_prob(theta).sum(1)
    assert abs(z_score(log_q - log_p, q.kl())) < 4
    q.log_std.fill_(math.log(0.8))
    q.network.theta.zero_()
    assert float(q.kl()) == pytest.approx(0.0, abs=1e-12)  # q = p


def test_local_reparameterisation_matches_kingma_equation_6():
    """One layer: f ~ N(x μ_Wᵀ + μ_b, x² σ_W²ᵀ + σ_b²), computed literally from the same noise."""
    problem = real(n=4)
    q, _ = make_q(problem, widths=())
    x = problem.train.x
    ((mean_w, mean_b),) = q.network.layers(q.network.theta)
    ((std_w, std_b),) = q.network.layers(q.log_std.exp())
    centre = x @ mean_w.T + mean_b
    variance = x**2 @ (std_w**2).T + std_b**2
    f = q.local(x, 3, generator(5))[..., 0]
    assert_close(f, centre + variance.sqrt() * draw_normal(3, 4, 2, seed=5))


def test_local_and_weight_sampling_agree_in_distribution():
    """For one row, sampling pre-activations or weights gives the same mean and variance of f
    through a ReLU layer."""
    q, rng = make_q(real(n=3))
    x = real(n=3).train.x
    n = 40_000
    by_weights = q.network.outputs(q.draw(n, rng.noise), x)
    by_units = q.local(x, n, rng.noise)
    for power in (1, 2):
        a, b = (f**power for f in (by_weights, by_units))
        z = (a.mean(0) - b.mean(0)) / ((a.var(0) + b.var(0)) / n).sqrt()
        assert z.abs().max() < 4


@pytest.mark.parametrize("estimator", ["local", "weights"])
def test_elbo_and_its_gradient_are_unbiased(estimator):
    """Linear network: E_q log N(y|xw + b, σ²) = log N(y|xμ + μ_b, σ²) − Σ x²σ²/2σ² has a closed
    form, and minibatches of random rows with weight N/B must not bias it."""
    problem = orthogonal(n=24)
    problem.batch_size = 6
    inference = component("inference", "mean_field_vi", estimator=estimator, n_samples=2)
    rng = Streams(3)
    q = MeanField(LINEAR.build(problem, rng), 0.2)
    parameters = [q.network.theta, q.log_std]
    x = torch.cat([problem.train.x, torch.ones(24, 1, dtype=F64)], 1)
    spread = (x**2) @ (2 * q.log_std).exp()
    residual = (problem.train.y[:, 0] - x @ q.network.theta) ** 2
    expected = (-0.5 * (math.log(2 * math.pi * 0.09) + (residual + spread) / 0.09)).sum() - q.kl()
    closed = torch.cat([expected[None], *torch.autograd.grad(expected, parameters)]).detach()
    draws = []
    for _, batch in problem.batches("minibatch", rng, 0, 1500):
        elbo = inference.terms(q, 0, batch, rng.noise)["elbo"]
        draws.append(torch.cat([elbo[None], *torch.autograd.grad(elbo, parameters)]).detach())
    sample = torch.stack(draws)
    # Batches of one epoch partition the data and are not independent: the epoch's mean is the
    # independent unit.
    assert z_score(sample.unflatten(0, (-1, 4)).mean(1), closed).abs().max() < 4


def test_bound_includes_kl_scale_and_noise_prior():
    problem = real()
    rng = Streams(0)
    q = MeanField(
        component("model", "mlp", noise_spread=0.5).build(problem, rng), 0.1
    ).requires_grad_(False)
    q.network.log_noise += 0.3
    terms = component("inference", "mean_field_vi", kl_scale=0.25).terms(
        q, 0, problem.train, rng.noise
    )
    prior = torch.distributions.Normal(math.log(0.1), 0.5).log_prob(q.network.log_noise).sum()
    assert_close(terms["elbo"], terms["log_likelihood"] - 0.25 * terms["kl"] + prior)


@pytest.mark.parametrize("t", [0, 3, 10, 25])
def test_warmup_scales_kl_linearly(t):
    """6.2 of Rodríguez Santana and Hernández-Lobato: β = t/warmup, then 1; the bound itself is
    recorded."""
    problem = real()
    rng = Streams(0)
    repeat = Streams(0)
    inference = component("inference", "mean_field_vi", kl_scale=0.5, warmup=10)
    state = replace(
        inference.init(component("model", "mlp").build(problem, rng), problem, rng), t=t
    )
    component("model", "mlp").build(problem, repeat)  # repeats the draws of the first call
    q = copy.deepcopy(state.q)
    terms = inference.terms(q, t, problem.train, repeat.noise)
    after, info = inference.step(state, problem.train, rng)
    (
        terms["log_likelihood"] - 0.5 * min(1.0, t / 10) * terms["kl"] + q.network.hyperprior()
    ).backward()
    scale = problem.train.scale * problem.train.n_rows
    for mine, literal in zip(state.q.parameters(), q.parameters(), strict=True):
        if literal.grad is not None:
            assert_close(mine.grad, -literal.grad / scale)
    assert after.t == t + 1
    assert_close(info["elbo"], terms["elbo"].detach())


def test_prediction_draws_whole_networks():
    problem = classes(batch_size=16)
    inference = component("inference", "mean_field_vi", n_predict=7, lr=0.01)
    state, rng = train(inference, component("model", "mbnn2", widths=[8]), problem, 10)
    posterior = inference.posterior(state)
    logits = posterior.predict(problem.test.x, rng.at("evaluation", 0)).logits
    theta = posterior.q.draw(7, rng.at("evaluation", 0))
    network = posterior.q.network
    for s in range(7):
        with torch.no_grad():
            network.theta.copy_(theta[s])
            assert_close(logits[s], network(problem.test.x))
