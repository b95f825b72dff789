import math

import pytest
import torch
from support.runs.configured import component, double, normal, uniform
from support.targets.known_targets import F64, PriorAlone, run_chains, sampled
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.log_joint import value_and_gradient
from runner.execution.rng import Streams


class Curved(PriorAlone):
    """A density in the plane whose gradient is not linear, so that no part of the accept ratio
    cancels."""

    def log_prior(self, theta):
        x, y = theta.unbind(1)
        return -0.5 * x**2 - (y - 0.5 * x**2) ** 2 - 0.1 * x**4


def warmed(shape, chains=5):
    rng = Streams(3)
    method = component("inference", "mala", chains=chains, warmup=40, covariance=shape)
    return method, run_chains(method, Curved(), 40, rng)[0], rng


def scale_matrix(method, state):
    """Σ + ε I of a state after warm-up."""
    if state.proposal.moments is None:
        return torch.eye(2, dtype=F64)
    covariance = state.proposal.moments["covariance"]
    return (
        covariance if covariance.dim() == 2 else covariance.diag()
    ) + method.regularisation * torch.eye(2, dtype=F64)


def gradient(theta):
    return value_and_gradient(Curved(), theta[None], None)[1][0]


@pytest.mark.parametrize("shape", ["identity", "diagonal", "dense"])
def test_a_step_is_the_literal_proposal_and_ratio(shape):
    method, state, rng = warmed(shape)
    Sigma, eps = scale_matrix(method, state), state.proposal.log_step.exp()[:, None]
    L = torch.linalg.cholesky(Sigma)
    literal = Streams(0)
    literal.restore(rng.state())
    theta, pi, accepted = state.theta.clone(), Curved().log_prior, 0

    def law(theta):
        slope = value_and_gradient(Curved(), theta, None)[1]
        return MultivariateNormal(theta + eps * slope @ Sigma, 2 * eps[..., None] * Sigma)

    for _ in range(15):
        z = normal(literal.noise, 5, 2)
        u = uniform(literal.noise, 5)
        state, info = method.step(state, None, rng)
        there = law(theta)
        proposal = there.mean + (2 * eps).sqrt() * z @ L.T
        log_ratio = (
            pi(proposal) + law(proposal).log_prob(theta) - pi(theta) - there.log_prob(proposal)
        )
        alpha = log_ratio.exp().clamp(max=1)
        accepted += int((u < alpha).sum())
        theta = torch.where((u < alpha)[:, None], proposal, theta)
        assert_close(info["acceptance"], alpha.mean(), rtol=1e-9, atol=0)
        assert_close(state.theta, theta, rtol=1e-9, atol=1e-9)
    assert 0 < accepted < 75


@pytest.mark.parametrize("shape", ["identity", "dense"])
def test_acceptance_is_that_of_abstract_hmc_with_one_leapfrog_step(shape):
    """Bardenet eq. (4.1): α(x) = 1 ∧ η(Φ(x))/η(x) |Φ'(x)| with η = N(p | 0, M) π(q), Φ a leapfrog
    step, M = Σ⁻¹."""
    method, state, rng = warmed(shape, chains=1)
    Sigma, h = scale_matrix(method, state), float((2 * state.proposal.log_step.exp()).sqrt())
    L = torch.linalg.cholesky(Sigma)
    momentum = MultivariateNormal(torch.zeros(2, dtype=F64), precision_matrix=Sigma)

    def leapfrog(x):
        q, p = x[:2], x[2:]
        p = p + h / 2 * gradient(q)
        q = q + h * Sigma @ p
        return torch.cat([q, p + h / 2 * gradient(q)])

    def log_eta(x):
        return float(Curved().log_prior(x[None, :2])) + float(momentum.log_prob(x[2:]))

    flip = double([1.0, 1, -1, -1])
    literal = Streams(0)
    for _ in range(10):
        literal.restore(rng.state())
        z = normal(literal.noise, 1, 2)[0]
        p = torch.linalg.solve_triangular(L.T, z[:, None], upper=True)[:, 0]  # N(0, Σ⁻¹)
        x = torch.cat([state.theta[0], p])
        new = leapfrog(x)
        assert_close(leapfrog(flip * new), flip * x)  # S ∘ Φ = Φ⁻¹ ∘ S
        step = 1e-5
        columns = [
            (leapfrog(x + step * e) - leapfrog(x - step * e)) / (2 * step)
            for e in torch.eye(4, dtype=F64)
        ]
        volume = float(torch.linalg.det(torch.stack(columns, 1)).abs())
        assert volume == pytest.approx(1, abs=1e-6)
        alpha = min(1.0, math.exp(log_eta(new) - log_eta(x)) * volume)  # eq. (4.1)
        state, info = method.step(state, None, rng)
        assert float(info["acceptance"]) == pytest.approx(alpha, rel=1e-5)


def test_a_chain_that_starts_where_only_small_steps_are_accepted_gets_away():
    class Neck(Curved):
        """v ~ N(0, 1), x | v ~ N(0, e^{−2v}); one chain starts where x | v is narrow, 160 standard
        deviations off."""

        def sample_prior(self, n, generator):
            theta = 0.1 * super().sample_prior(n, generator)
            theta[0] = double([4.0, 3.0])
            return theta

        def log_prior(self, theta):
            v, x = theta.unbind(1)
            return -0.5 * v**2 + v - 0.5 * (x * v.exp()) ** 2

    draws = sampled("mala", Neck(), 1500, chains=8, warmup=500)
    assert draws.stats["acceptance_rate"].mean(1).min() > 0.3
    assert draws.draws[0, :, 0].mean() < 2


def test_a_gradient_that_is_nan_where_the_density_is_not_is_trouble():
    class NoSlope(Curved):
        def log_prior(self, theta):
            x = theta[:, 0]
            return super().log_prior(theta) + torch.where(x > 1, 0.0, 0 * (1 - x).sqrt())

    with pytest.raises(NumericalError, match="gradient of the log density is not a number"):
        sampled("mala", NoSlope(), 300, chains=1, warmup=0, step_size=1.0, seed=1)
