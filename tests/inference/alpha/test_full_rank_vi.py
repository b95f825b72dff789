"""Full-rank variational inference of a network: the exact posterior where the network is linear."""

import pytest
import torch
from configured import defaults
from small_problems import component, real, train

from runner.compose.build import built
from runner.compose.parts import filled
from runner.mistakes import ConfigError


def full_rank(**changes):
    values = defaults("inference", "full_rank_vi") | changes
    return built("inference", filled("inference", values, "inference"), "inference")


def test_it_finds_all_covariances_of_a_conjugate_regression():
    g = torch.Generator().manual_seed(0)
    problem = real(n=30, n_tasks=1, missing=0.0)
    problem.train.x[:, 1] = problem.train.x[:, 0] + 0.5 * torch.randn(30, generator=g, dtype=torch.float64)
    model = component("model", "mlp", widths=[], prior_std=0.8, noise=0.09)
    inference = full_rank(gradient="sticking_the_landing", lr=0.01, n_samples=20, initial_std=0.1, draws=5)
    # a gradient without noise where q is exact: what is left is rounding of Adam's steps
    posterior = inference.posterior(train(inference, model, problem, 1500)[0])
    x = torch.cat([problem.train.x, torch.ones(30, 1, dtype=torch.float64)], 1)
    covariance = torch.linalg.inv(x.T @ x / 0.09 + torch.eye(4, dtype=torch.float64) / 0.64)
    mean = covariance @ x.T @ problem.train.y[:, 0] / 0.09
    assert float(((posterior.q_mean - mean) / covariance.diagonal().sqrt()).abs().max()) < 0.2
    scale = covariance.diagonal().sqrt()
    gap = (posterior.q_covariance - covariance) / torch.outer(scale, scale)
    assert float(gap.abs().max()) < 0.15
    assert covariance[0, 1] / (scale[0] * scale[1]) < -0.6  # which a diagonal would miss


def test_it_starts_where_training_does_and_has_no_diagonal():
    problem = real()
    model = component("model", "mlp", widths=[3])
    inference = full_rank(initial_std=0.02)
    state, _ = train(inference, model, problem, 0)
    assert 0.05 < float(state.module.mean.detach()[:9].abs().mean()) < 1.0
    assert float(state.module.mean.detach()[9:12].abs().max()) == 0  # biases
    with pytest.raises(ConfigError, match="covariance"):
        full_rank(covariance="diagonal")
