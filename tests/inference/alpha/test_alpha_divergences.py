"""bb_alpha, renyi_vi and mc_dropout_alpha: literal objectives, limits, and a resumed run."""

import math

import pytest
import torch
from alpha_networks import make_q
from support.runs.configured import F64, draw_normal, generator
from support.small.small_problems import classes, component, linear_posterior, real, train
from torch.testing import assert_close

from runner.execution.rng import Streams

LINEAR = component("model", "mlp", widths=[], prior_std=0.8, noise=0.09)
PLAIN = {"widths": [4], "dropout": 0.3}


def ell_of(q, theta, batch):
    return q.network.log_prob(q.network.outputs(theta, batch.x), batch)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0])
@pytest.mark.parametrize(
    "problem", [real(batch_size=10), classes(batch_size=10)], ids=["real", "classes"]
)
def test_bb_alpha_energy_matches_equation_22(problem, alpha):
    """log Z_q − log Z_p + N/(B α) Σ_b log K⁻¹ Σ_k (p(y_b|θ_k)/f̃(θ_k))^α, with the normalisers and
    the factor by definition."""
    q = make_q(problem)
    _, batch = next(iter(problem.batches("minibatch", Streams(0), 0, 1)))
    inference = component("inference", "bb_alpha", alpha=alpha, n_samples=3)
    objective = inference.terms(q, 0, batch, generator(5))["objective"]
    theta = q.draw(3, generator(5))
    mu = q.network.theta
    v = (2 * q.log_std).exp()
    s2 = q.network.prior_std**2
    log_z_q = (0.5 * (2 * math.pi * v).log() + mu**2 / (2 * v)).sum()
    log_z_p = (0.5 * (2 * math.pi * s2).log()).sum()
    # with q = f̃^N p / Z
    log_factor = (theta * mu / v - 0.5 * theta**2 * (1 / v - 1 / s2)).sum(1) / problem.n
    ratio = (ell_of(q, theta, batch) - log_factor[:, None]) * alpha
    expected = log_z_q - log_z_p + problem.n / 10 / alpha * (ratio.logsumexp(0) - math.log(3)).sum()
    assert_close(objective, expected + q.network.hyperprior(), rtol=1e-7, atol=1e-7)


def test_bb_alpha_tends_to_variational_bound():
    """For α → 0, the mean of log p(y|θ) + log p(θ) − log q(θ) over the same draws."""
    problem = real()
    small, bound = (
        component("inference", name, alpha=alpha, n_samples=4).terms(
            make_q(problem), 0, problem.train, generator(1)
        )["objective"]
        for name, alpha in (("bb_alpha", 1e-9), ("renyi_vi", 1.0))
    )
    assert_close(small, bound, atol=1e-4, rtol=0)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
def test_renyi_bound_matches_definition(alpha):
    problem = real(batch_size=8)
    q = make_q(problem).requires_grad_()
    _, batch = next(iter(problem.batches("minibatch", Streams(0), 0, 1)))
    inference = component("inference", "renyi_vi", alpha=alpha, n_samples=3)
    objective = inference.terms(q, 0, batch, generator(2))["objective"]
    theta = q.draw(3, generator(2))
    log_p = torch.distributions.Normal(0.0, q.network.prior_std).log_prob(theta).sum(1)
    log_q = torch.distributions.Normal(q.network.theta, q.log_std.exp()).log_prob(theta).sum(1)
    w = problem.n / 8 * ell_of(q, theta, batch).sum(1) + log_p - log_q
    power = 1 - alpha
    expected = w.mean() if power == 0 else ((power * w).logsumexp(0) - math.log(3)) / power
    expected = expected + q.network.hyperprior()
    assert_close(objective, expected)
    slopes = [
        torch.autograd.grad(value, [q.network.theta, q.log_std]) for value in (objective, expected)
    ]
    assert_close(*slopes)


def test_renyi_bound_rises_to_evidence():
    """For α = 0, E L_K ≤ log p(y) and rises from K = 1 (the evidence lower bound), in a conjugate
    regression."""
    problem = real(n=12, n_tasks=1, missing=0.0)
    x = torch.cat([problem.train.x, torch.ones(problem.n, 1, dtype=F64)], 1)
    y = problem.train.y[:, 0]
    covariance = 0.09 * torch.eye(12, dtype=F64) + 0.64 * x @ x.T
    evidence = torch.distributions.MultivariateNormal(torch.zeros_like(y), covariance).log_prob(y)
    q = make_q(problem, 0.15, LINEAR)
    q.network.theta.copy_(linear_posterior(problem, 0.09, 0.64)[0][:, 0])

    def estimate_bound(n_samples):
        inference = component("inference", "renyi_vi", alpha=0.0, n_samples=n_samples)
        g = generator(3)
        values = [inference.terms(q, 0, problem.train, g)["objective"] for _ in range(200)]
        return float(torch.stack(values).mean())

    bound_1, ten, many = (estimate_bound(n) for n in (1, 10, 2000))
    assert bound_1 < ten < many
    assert many == pytest.approx(float(evidence), abs=0.1)


def test_larger_alpha_widens_mean_field():
    """With correlated inputs, variational inference is too narrow, and expectation propagation is
    not."""
    problem = real(n=30, n_tasks=1, missing=0.0)
    problem.train.x[:, 1] = problem.train.x[:, 0] + 0.3 * draw_normal(30)
    keys = {"lr": 0.02, "n_samples": 30, "initial_std": 0.1}
    small, single_draw = (
        train(component("inference", "bb_alpha", alpha=alpha, **keys), LINEAR, problem, 400)[0]
        .q.log_std.detach()
        .exp()
        for alpha in (1e-4, 1.0)
    )
    precision = linear_posterior(problem, 0.09, 0.64)[1]
    narrow = precision.diagonal() ** -0.5
    marginal = torch.linalg.inv(precision).diagonal().sqrt()
    assert_close(small, narrow, rtol=0.25, atol=0)
    correlated = marginal > 1.5 * narrow
    assert correlated.any()
    assert (single_draw[correlated] > 1.2 * small[correlated]).all()


def test_dropout_with_one_pass_is_mc_dropout():
    problem = classes(batch_size=16)
    model = component("model", "mlp", **PLAIN)
    plain, _ = train(component("inference", "mc_dropout", lr=0.01), model, problem, 12)
    alpha, _ = train(
        component("inference", "mc_dropout_alpha", lr=0.01, n_samples=1), model, problem, 12
    )
    assert_close(alpha.network.theta, plain.network.theta)


def test_dropout_loss_matches_equation_27():
    problem = real(batch_size=10)
    model = component("model", "mlp", **PLAIN)
    rng = Streams(0)
    inference = component("inference", "mc_dropout_alpha", alpha=0.5, n_samples=4)
    state = inference.init(model.build(problem, rng), problem, rng)
    _, batch = next(iter(problem.batches("minibatch", rng, 0, 1)))
    noise_state = rng.noise.get_state()
    with torch.no_grad():
        f = state.network(batch.x, rng.noise, 4)
        p = state.network.log_prob(f, batch).exp()
        expected = -problem.n / 10 * (p.sqrt().mean(0).log() / 0.5).sum() + state.network.penalty()
    rng.noise.set_state(noise_state)
    _, info = inference.step(state, batch, rng)
    assert float(info["loss"]) * problem.n == pytest.approx(float(expected))


@pytest.mark.parametrize("name", ["bb_alpha", "renyi_vi", "mc_dropout_alpha"])
def test_predictions_use_n_predict_draws(name):
    problem = real()
    model = component("model", "mlp", **PLAIN)
    inference = component("inference", name, n_samples=3, n_predict=6)
    posterior = inference.posterior(train(inference, model, problem, 1)[0])
    assert posterior.predict(problem.test.x, generator(0)).mu.shape == (6, 40, 2)
