"""Chains on minibatches: their stationary distribution, and the bias caused by the noise."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from support.runs.configured import component, generator
from support.small.small_problems import noisy_sines
from support.targets.known_targets import z_score
from support.targets.recipe import F64, PriorOfTwo, covariance_z, fixed_point

from components.contracts.problems import Batch
from runner.execution.rng import Streams


class RowsOfChains(PriorOfTwo):
    """y ~ N(x·θ, σ²), θ ~ N(0, I); a batch holds different rows for each chain, x [B, K, P], so
    that chains are independent."""

    sigma2 = 0.5

    def log_likelihood(self, theta, batch):
        shared = batch.x.ndim == 2
        predicted = theta @ batch.x.T if shared else (batch.x * theta).sum(2).T  # [K, B]
        return -0.5 * ((batch.y[:, 0] if shared else batch.y.T) - predicted).square() / self.sigma2

    def log_prior(self, theta):
        return -0.5 * theta.square().sum(1)


def chains_on_minibatches(name, gradient, eps, steps, n_chains=4000, **keys):
    """Final positions of chains that each use two rows per step: (θ [C, P], the problem, the
    method's state)."""
    problem = noisy_sines(8)
    model = RowsOfChains()
    rng = Streams(0)
    size = 4
    inference = component(
        "inference", name, chains=n_chains, gradient=gradient, step_size=eps, thinning=10**6, **keys
    )
    state = inference.init(model, problem, rng)
    if gradient == "control_variate":
        control = state.control
        control = replace(
            control,
            reference=control.reference.expand(n_chains, 2),
            slope=control.slope.expand(n_chains, 2),
        )
        state = replace(state, control=control)
    pick = generator(3)
    for _ in range(steps):
        rows = torch.rand(n_chains, problem.n, generator=pick).argsort(1)[:, :size].T  # [B, K]
        batch = Batch(
            problem.train.x[rows],
            problem.train.y[rows, 0],
            problem.train.mask[rows, 0],
            problem.n / size,
        )
        state, info = inference.step(state, batch, rng)
    return state.theta, problem, info


def moments(problem, eps, gradient):
    """Posterior mean and covariance, and the stationary covariance of SGLD, computed exactly from
    all minibatches.

    ĝ(θ) = b − A θ for each batch, so that Σ = E[(I − εA) Σ (I − εA)ᵀ] + ε² Cov(b − A m) + 2εI."""
    X = problem.train.x
    y = problem.train.y[:, 0]
    eye = torch.eye(2, dtype=F64)
    precision = eye + X.T @ X / RowsOfChains.sigma2
    m = torch.linalg.solve(precision, X.T @ y / RowsOfChains.sigma2)
    spread = []
    for rows in combinations(range(problem.n), 4):
        x = X[list(rows)]
        label = y[list(rows)]
        scale = problem.n / 4 / RowsOfChains.sigma2
        A = eye + scale * x.T @ x
        # 0 with control variates, as θ̂ = m
        off = (gradient == "plain") * (scale * x.T @ label - A @ m)
        spread.append((eye - eps * A, eps**2 * torch.outer(off, off)))

    def f(S):
        return 2 * eps * eye + torch.stack([B @ S @ B.T + V for B, V in spread]).mean(0)

    return m, torch.linalg.inv(precision), fixed_point(f, 2)


@pytest.mark.parametrize("gradient", ["plain", "control_variate"])
def test_sgld_has_stationary_moments_of_minibatches(gradient):
    theta, problem, _ = chains_on_minibatches("sgld", gradient, 0.01, 200)
    m, _, rests = moments(problem, 0.01, gradient)
    assert z_score(theta, m).abs().max() < 4
    assert covariance_z(theta, rests) < 4.5  # the distribution is slightly wider than a Gaussian


def excess_variance(theta, problem):
    """Relative error of the total variance."""
    exact = moments(problem, 0.01, "plain")[1]
    return float(theta.var(0).sum() / exact.trace() - 1)


def test_minibatch_bias_shrinks_with_step_size():
    exact = {}
    for gradient in ("plain", "control_variate"):
        for eps in (0.01, 0.005, 0.0025):
            _, covariance, rests = moments(noisy_sines(8), eps, gradient)
            exact[gradient, eps] = float(rests.trace() / covariance.trace() - 1)
        assert exact[gradient, 0.005] / exact[gradient, 0.0025] == pytest.approx(2, rel=0.1)
    assert exact["control_variate", 0.01] < 0.7 * exact["plain", 0.01]
    svrg, problem, _ = chains_on_minibatches("sgld", "svrg", 0.01, 200, refresh_every=5)
    assert excess_variance(svrg, problem) < 0.7 * exact["plain", 0.01] + 0.03


KEYS = {"gradient": "plain", "eps": 0.05, "steps": 250, "friction": 2.0}


@pytest.fixture(scope="module")
def hot_excess():
    """Excess of chains that do not correct for the noise of minibatches."""
    return excess_variance(*chains_on_minibatches("sghmc", **KEYS, noise_estimate=False)[:2])


def test_sghmc_subtracts_minibatch_noise(hot_excess):
    keys = KEYS | {"noise_window": 20, "noise_estimate": True}
    theta, problem, info = chains_on_minibatches("sghmc", **keys)
    assert hot_excess > 0.15
    assert abs(excess_variance(theta, problem)) < 0.35 * hot_excess
    assert 0 <= info["uncovered"] < 0.2


def test_thermostat_absorbs_minibatch_noise(hot_excess):
    theta, problem, info = chains_on_minibatches("recipe", **KEYS, dynamics="thermostat")
    assert info["thermostat"] > 2.2  # friction that balances the gradients' noise
    assert abs(excess_variance(theta, problem)) < 0.5 * hot_excess
