import pytest
import torch
from support.runs.configured import component, double, normal
from support.small import small_problems
from support.targets.exact_moments import regression_moments
from support.targets.known_targets import (
    GaussianTarget,
    correlated_gaussian,
    moment_z,
    sample_target,
)
from support.targets.rank_test import NormalGamma, rank_p, two_sample_p

from components.contracts.capabilities import Conditionals
from components.errors import NumericalError
from runner.execution.rng import Streams

REVERSED = NormalGamma(("tau", "mu"))


class Coordinates(GaussianTarget):
    """A Gaussian with its coordinates as blocks: θ_j | θ_−j ~ N(μ_j − Σ_k Λ_jk (θ_k − μ_k)/Λ_jj,
    1/Λ_jj)."""

    def __init__(self, correlation=0.8, precision_factor=1.0):
        other = correlated_gaussian(correlation)
        super().__init__(other.mean, other.covariance)
        self.blocks = ["x0", "x1"]
        self.factor = precision_factor
        self.asked = []

    def draw_block(self, block, theta, batch, generator):
        self.asked.append(block)
        j = self.blocks.index(block)
        centred = theta - self.mean
        away = centred @ self.precision[j] - self.precision[j, j] * centred[:, j]
        mean = self.mean[j] - away / self.precision[j, j]
        z = normal(generator, len(theta))
        theta = theta.clone()
        theta[:, j] = mean + (self.factor * self.precision[j, j]).rsqrt() * z
        return theta


def regression(**settings):
    """A linear regression on a few rows, the batch of all rows, and exact moments."""
    problem = small_problems.real(n=12, n_inputs=2, n_tasks=1, missing=0.2)
    keys = {"noise_shape": 3.0, "prior_scale": 2.0, "intercept_scale": 1.0} | settings
    model = component("model", "linear_regression", **keys).build(problem, Streams(0))
    model.first, model.second = regression_moments(model, problem.train)
    return model, problem


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_moments_match_gaussian(scan):
    model = Coordinates()
    assert (
        moment_z(sample_target("gibbs", model, 500, chains=200, burn_in=60, scan=scan), model) < 4
    )


def test_gaussian_chain_has_expected_autocorrelation():
    """Over systematic sweeps, x1 is autoregressive with coefficient ρ² (Robert & Casella, section
    9.1)."""
    model = Coordinates(0.7)
    x = sample_target("gibbs", model, 400, chains=500, burn_in=50).draws[..., 1] - model.mean[1]
    lag = (x[:, 1:] * x[:, :-1]).mean(1) / model.covariance[1, 1]  # [C]
    error = lag.std() / len(lag) ** 0.5
    assert abs((lag.mean() - 0.49) / error) < 4


@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.parametrize("noise", ["learned", 0.5])
def test_moments_match_linear_regression(scan, noise):
    model, problem = regression(noise=noise)
    assert isinstance(model, Conditionals)
    assert moment_z(sample_regression(model, problem, scan=scan), model) < 4


def sample_regression(model, problem, **keys):
    gibbs = component("inference", "gibbs", chains=200, burn_in=40, **keys)
    return gibbs.posterior(small_problems.train(gibbs, model, problem, 500)[0])


def test_wrong_conditional_is_detected():
    model = Coordinates(precision_factor=1.1)
    assert moment_z(sample_target("gibbs", model, 500, chains=200, burn_in=60), model) > 4

    class ForgetsPrior(NormalGamma):
        def draw_block(self, block, theta, batch, generator):
            self.a = 3.0 if block == "mu" else 2.0  # Gamma(a − 1 + B/2, …)
            theta = super().draw_block(block, theta, batch, generator)
            self.a = 3.0
            return theta

    wrong = {"name": "gibbs", "model": ForgetsPrior(), "burn_in": 0}
    assert rank_p(**wrong, scan="random") < 1e-6
    assert two_sample_p(**wrong) < 1e-6

    model, problem = regression()
    right = model.draw_block

    def half_the_noise(block, theta, batch, generator):
        if block == "beta":  # β drawn with the variance σ²/2
            theta = theta - double([0.0, 0, 0, 0.693147])
            return right(block, theta, batch, generator) + double([0.0, 0, 0, 0.693147])
        return right(block, theta, batch, generator)

    model.draw_block = half_the_noise
    assert moment_z(sample_regression(model, problem), model) > 4


def test_kernel_leaves_posteriors_invariant():
    many = {"replications": 10_000, "burn_in": 0}
    assert rank_p("gibbs", NormalGamma(), backward=REVERSED, **many) > 1e-3
    assert rank_p("gibbs", NormalGamma(), scan="random", **many) > 1e-3
    assert two_sample_p("gibbs", NormalGamma(), burn_in=0) > 1e-3


def test_systematic_sweep_follows_model_order():
    model = Coordinates()
    sample_target("gibbs", model, 3, chains=2, burn_in=0)
    assert model.asked == ["x0", "x1"] * 3


def test_random_scan_draws_blocks_per_chain():
    model = Coordinates()
    method = component("inference", "gibbs", chains=4000, burn_in=0, scan="random")
    rng = Streams(0)
    state = method.init(model, None, rng)
    theta_before = state.theta
    state, _ = method.step(state, None, rng)
    # in a quarter of chains, neither pick selects a coordinate
    unchanged = (state.theta == theta_before).double().mean(0)
    assert unchanged.tolist() == pytest.approx([0.25, 0.25], abs=0.03)
    assert not (state.theta == theta_before).all(1).any()


def test_kept_draws_follow_burn_in_and_thinning():
    model = Coordinates()
    draws = sample_target("gibbs", model, 11, chains=3, burn_in=5, thinning=2)
    assert draws.draws.shape == (3, 3, 2)
    torch.testing.assert_close(draws.stats["lp"].flatten(), model.log_prior(draws.flat))


def test_invalid_conditionals_are_refused():
    class Overflowing(Coordinates):
        def draw_block(self, block, theta, batch, generator):
            return theta / 0

    with pytest.raises(NumericalError, match="fix the conditionals of the model"):
        sample_target("gibbs", Overflowing(), 3, chains=2)
