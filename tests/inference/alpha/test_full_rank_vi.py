"""Full-rank variational inference of a network: the exact posterior if the network is linear."""

from functools import partial

import pytest
import torch
from support.runs.configured import F64, compose_component, draw_normal, generator, normal, uniform
from support.small.small_problems import component, linear_posterior, real, train
from torch.testing import assert_close

from components.inference.alpha.full_rank_vi import RowScaledGaussian
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.maths.divergences.gaussian_kl import kl_gaussian
from components.maths.optimizers import Adam
from runner.errors import ConfigError

full_rank = partial(compose_component, "inference", "full_rank_vi")


def test_full_rank_vi_finds_conjugate_covariance():
    problem = real(n=30, n_tasks=1, missing=0.0)
    problem.train.x[:, 1] = problem.train.x[:, 0] + 0.5 * draw_normal(30)
    model = component("model", "mlp", widths=[], prior_std=0.8, noise=0.09)
    keys = {"lr": 0.03, "n_samples": 20, "initial_std": 0.1, "draws": 5}
    inference = full_rank(gradient="sticking_the_landing", **keys)
    # the gradient has no noise if q is exact; only the rounding of Adam's steps remains
    posterior = inference.posterior(train(inference, model, problem, 700)[0])
    mean, precision = linear_posterior(problem, 0.09, 0.64)
    covariance = torch.linalg.inv(precision)
    scale = covariance.diagonal().sqrt()
    assert ((posterior.q_mean - mean[:, 0]) / scale).abs().max() < 0.2
    gap = (posterior.q_covariance - covariance) / torch.outer(scale, scale)
    assert gap.abs().max() < 0.15
    # a diagonal q would not have this correlation
    assert covariance[0, 1] / (scale[0] * scale[1]) < -0.6


def test_full_rank_vi_starts_at_initial_network():
    problem = real()
    model = component("model", "mlp", widths=[3])
    inference = full_rank(initial_std=0.02)
    state, _ = train(inference, model, problem, 0)
    assert 0.05 < state.module.mean.detach()[:9].abs().mean() < 1.0
    assert state.module.mean.detach()[9:12].abs().max() == 0  # biases
    with pytest.raises(ConfigError, match="covariance"):
        full_rank(covariance="diagonal")


class Independent:
    """A log joint without rows and with prior N(0, diag s²)."""

    def __init__(self, std):
        self.std = std

    def gaussian_prior(self):
        return self.std

    def log_prior(self, theta):
        return torch.distributions.Normal(0.0, self.std).log_prob(theta).sum(1)

    def log_likelihood(self, theta, batch):
        raise AssertionError("there are no rows")


def family(P=5, prior=None):
    g = generator(1)
    std = 0.5 + uniform(g, P) if prior is None else prior
    q = RowScaledGaussian(
        RowwiseLogJoint(Independent(std)),
        normal(g, P),
        0.3,
        "shared",
    )
    with torch.no_grad():
        q.log_std += 0.5 * normal(g, P)
        q.lower += normal(g, P, P)
    return q, std


def test_factor_draws_and_density_describe_one_gaussian():
    q, std = family()
    L = q.scale_tril.detach()
    s = q.log_std.detach().exp()
    P = 5
    unit = torch.eye(P, dtype=F64)
    # L = diag(s) (I + N/√P), N strictly lower triangular
    assert_close(L, s[:, None] * (unit + q.lower.detach().tril(-1) / P**0.5))
    noise = draw_normal(7, 2, P, seed=2)
    theta = q.transform(noise)
    assert_close(theta, q.mean + noise @ L.T)
    exact = torch.distributions.MultivariateNormal(q.mean.detach(), scale_tril=L)
    assert_close(q.log_density(theta), exact.log_prob(theta.detach()))
    assert_close(q.entropy, exact.entropy())
    assert_close(q.kl(), kl_gaussian(q.mean, L, torch.zeros(P, dtype=F64), std.diag()))


def test_adam_step_is_bounded_by_spread_of_row():
    P = 400
    lr = 0.01
    q, _ = family(P, torch.ones(P, dtype=F64))
    with torch.no_grad():
        q.lower.zero_()
    optimizer = Adam(q.parameters(), lr)
    q.transform(draw_normal(1, 1, P, seed=3)).sum().backward()
    optimizer.step()  # gradients are pure noise of constant length
    rows = q.scale_tril.detach().tril(-1).square().sum(1).sqrt() / q.log_std.detach().exp()
    assert rows[1:].max() <= lr * 1.001  # with step sizes for entries of L: lr √P over the spread
    assert rows[-1] > 0.99 * lr


def test_defaults_train_a_network():
    problem = real(n=120, n_tasks=1, missing=0.0)
    # the noise of the first step must not dominate the function
    y = problem.train.x.sin().sum(1, keepdim=True)
    problem.train.y.copy_((y - y.mean()) / y.std())
    model = component("model", "mlp", widths=[30])
    inference = full_rank(draws=50)
    posterior = inference.posterior(train(inference, model, problem, 300)[0])
    with torch.no_grad():
        mean = posterior.predict(problem.train.x, generator(0)).mean
    # steps for entries of L exceed 1
    assert (mean - problem.train.y).square().mean() < 0.3
