from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, double, generator, load, normal
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.capabilities import LogJoint
from components.errors import NumericalError
from components.inference.log_joint import log_joint, value_and_gradient
from runner.execution.rng import Streams

SIGMA2 = double([1.0, 0.25])
MEAN = double([0.5, -2.0])


class Gaussian:
    """N(MEAN, diag SIGMA2), whose Langevin chain is autoregressive."""

    dim, names = 2, ["a", "b"]

    def constrain(self, theta):
        return theta

    def sample_prior(self, n, generator):
        return MEAN + normal(generator, n, 2)

    def log_likelihood(self, theta, batch):
        return theta.new_zeros(len(theta), 0)

    def log_prior(self, theta):
        return -0.5 * ((theta - MEAN) ** 2 / SIGMA2).sum(1)


def chains(eps: float, steps: int, n: int, seed: int = 0) -> torch.Tensor:
    sgld = component("inference", "sgld", chains=n, step_size=eps, burn_in=steps - 1, thinning=1)
    rng = Streams(seed)
    state = sgld.init(Gaussian(), None, rng)
    for _ in range(steps):
        state, _ = sgld.step(state, None, rng)
    return sgld.posterior(state).draws[:, -1]  # [L, P]


def literal_chains(
    eps: float, steps: int, n: int, noise_variance: float, seed: int = 0
) -> torch.Tensor:
    """Eq. (2.1) written out, with a noise variance of one's choice."""
    rng = Streams(seed)
    theta = Gaussian().sample_prior(n, rng.init)
    for _ in range(steps):
        z = normal(rng.noise, theta.shape)
        theta = theta - eps * (theta - MEAN) / SIGMA2 + math.sqrt(noise_variance) * z
    return theta


def variance_z(theta: torch.Tensor, eps: float) -> torch.Tensor:
    """Largest |z| of the variances over chains against σ²/(1 − ε/(2σ²)), the stationary one of the
    discretised chain."""
    exact = SIGMA2 / (1 - eps / (2 * SIGMA2))
    error = exact * math.sqrt(2 / (len(theta) - 1))
    return ((theta.var(0) - exact) / error).abs().max()


def test_step_is_equation_2_1():
    assert_close(chains(0.1, 7, 50), literal_chains(0.1, 7, 50, 0.2), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("eps", [0.2, 0.05, 0.02])
def test_stationary_moments_are_those_of_the_autoregression(eps):
    theta = chains(eps, steps=int(8 / eps), n=20_000)  # start forgotten: e⁻⁸ of it is left
    assert z_score(theta, MEAN).abs().max() < 4
    assert variance_z(theta, eps) < 4


@pytest.mark.parametrize("wrong", [0.5, 2.0, 0.95])
def test_a_wrong_noise_scale_is_seen(wrong):
    assert variance_z(literal_chains(0.2, 40, 20_000, wrong * 2 * 0.2), 0.2) > 4


def test_bias_of_the_variance_vanishes_at_first_order_in_the_step():
    bias = [
        float((chains(eps, int(8 / eps), 60_000).var(0) / SIGMA2 - 1)[1])
        for eps in (0.2, 0.1, 0.05)
    ]
    # Exact: (ε/2σ²)/(1 − ε/2σ²) = 0.667, 0.25, 0.111; the Monte-Carlo error of each is 0.01 or
    # less.
    assert bias == pytest.approx([2 / 3, 0.25, 1 / 9], abs=0.04)


def test_minibatch_gradients_are_unbiased():
    @dataclass
    class Rows:
        y: torch.Tensor
        scale: float

        @property
        def n_rows(self):
            return len(self.y)

    class Regression(Gaussian):
        def log_likelihood(self, theta, batch):
            return -0.5 * (batch.y - theta[:, :1]) ** 2  # [K, B]

    y = normal(generator(0), 6)
    theta = Gaussian().sample_prior(4, generator(1))
    whole = value_and_gradient(Regression(), theta, Rows(y, 1.0))
    parts = [
        value_and_gradient(Regression(), theta, Rows(y[list(b)], 3.0))
        for b in itertools.combinations(range(6), 2)
    ]
    for i in range(2):
        assert_close(torch.stack([p[i] for p in parts]).mean(0), whole[i])
    literal = torch.stack(
        [-0.5 * ((t - MEAN) ** 2 / SIGMA2).sum() - 0.5 * ((y - t[0]) ** 2).sum() for t in theta]
    )
    assert_close(log_joint(Regression(), theta, Rows(y, 1.0)), literal)


def test_burn_in_and_thinning_decide_what_is_kept():
    sgld, rng = component("inference", "sgld", chains=3, burn_in=4, thinning=3), Streams(0)
    state, seen = sgld.init(Gaussian(), None, rng), []
    for _ in range(12):
        assert sgld.posterior(state).n_draws == len(state.kept)
        state, info = sgld.step(state, None, rng)
        seen.append(state.theta)
    kept = sgld.posterior(state)
    assert info["draws"] == 2
    assert torch.equal(kept.draws, torch.stack([seen[6], seen[9]], 1))
    assert torch.equal(kept.flat.mean(0), kept.mean)


def test_step_sizes_decay_as_a_power():
    sgld = component(
        "inference", "sgld", step_size=0.1, schedule="polynomial", decay=0.6, decay_scale=10.0
    )
    rng = Streams(0)
    state, eps = sgld.init(Gaussian(), None, rng), []
    for _ in range(21):
        state, info = sgld.step(state, None, rng)
        eps.append(info["step_size"])
    assert eps[0] == 0.1
    assert eps[20] == pytest.approx(0.1 * 3**-0.6)
    with pytest.raises(ValidationError, match="Robbins-Monro"):
        component("inference", "sgld", schedule="polynomial", decay=0.4)


def test_a_step_too_large_says_which_key():
    sgld, rng = component("inference", "sgld", step_size=5.0), Streams(0)
    state = sgld.init(Gaussian(), None, rng)

    def many():
        nonlocal state
        for _ in range(2000):
            state, _ = sgld.step(state, None, rng)

    with pytest.raises(NumericalError, match=r"lower inference\.step_size"):
        many()


def test_mixture_of_gaussians_from_end_to_end():
    problem, rng = load("mixture_of_gaussians_2d")
    sgld = component("inference", "sgld", chains=400, step_size=0.02, burn_in=100)
    model = component("model", "target_density").build(problem, rng)
    assert isinstance(model, LogJoint)
    state = sgld.init(model, problem, rng)
    for _, batch in problem.batches("minibatch", rng, 0, 200):
        state, _ = sgld.step(state, batch, rng)
    draws = sgld.posterior(state)
    assert draws.draws.shape == (400, 10, 2)
    scores = problem.score(draws, rng)
    assert {"error_mean", "error_second_moment", "ess", "rhat", "rhat/x1"} <= set(scores)
    # Chains can hardly change modes in so few steps; inside a mode they are at home: spread v/(1 −
    # ε/2v) = 0.111.
    nearest = 2 * (draws.flat / 2).round().clamp(-1, 1)
    within = (draws.flat - nearest).square().mean()
    assert float(within) == pytest.approx(0.1 / 0.9, rel=0.06)
    assert set(problem.draw(draws, rng)) == {
        "particles",
        "trace",
        "ranks",
        "pairs",
        "autocorrelation",
    }
