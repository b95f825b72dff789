import pytest
import torch
from support.runs.configured import component, double, normal, uniform
from support.targets.known_targets import F64, Curved, run_chains, sample_target
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.log_joint import value_and_gradient
from runner.execution.rng import Streams


def warm_up(shape, chains=5):
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
def test_step_matches_proposal_and_ratio(shape):
    method, state, rng = warm_up(shape)
    Sigma = scale_matrix(method, state)
    eps = state.proposal.log_step.exp()[:, None]
    L = torch.linalg.cholesky(Sigma)
    literal = Streams(0)
    literal.restore(rng.state())
    theta = state.theta.clone()
    pi = Curved().log_prior
    accepted = 0

    def law(theta):
        slope = value_and_gradient(Curved(), theta, None)[1]
        return MultivariateNormal(theta + eps * slope @ Sigma, 2 * eps[..., None] * Sigma)

    for _ in range(15):
        z = normal(literal.noise, 5, 2)
        u = uniform(literal.noise, 5)
        state, info = method.step(state, None, rng)
        law_at_theta = law(theta)
        proposal = law_at_theta.mean + (2 * eps).sqrt() * z @ L.T
        log_ratio = (
            pi(proposal)
            + law(proposal).log_prob(theta)
            - pi(theta)
            - law_at_theta.log_prob(proposal)
        )
        alpha = log_ratio.exp().clamp(max=1)
        accepted += int((u < alpha).sum())
        theta = torch.where((u < alpha)[:, None], proposal, theta)
        assert_close(info["acceptance"], alpha.mean(), rtol=1e-9, atol=0)
        assert_close(state.theta, theta, rtol=1e-9, atol=1e-9)
    assert 0 < accepted < 75


def test_chain_escapes_region_of_small_steps():
    class Neck(Curved):
        """v ~ N(0, 1), x | v ~ N(0, e^{−2v}); one chain starts 160 standard deviations away, where
        x | v is narrow."""

        def sample_prior(self, n, generator):
            theta = 0.1 * super().sample_prior(n, generator)
            theta[0] = double([4.0, 3.0])
            return theta

        def log_prior(self, theta):
            v, x = theta.unbind(1)
            return -0.5 * v**2 + v - 0.5 * (x * v.exp()) ** 2

    draws = sample_target("mala", Neck(), 1500, chains=8, warmup=500)
    assert draws.stats["acceptance_rate"].mean(1).min() > 0.3
    assert draws.draws[0, :, 0].mean() < 2


def test_nan_gradient_at_finite_density_is_an_error():
    class NoSlope(Curved):
        def log_prior(self, theta):
            x = theta[:, 0]
            return super().log_prior(theta) + torch.where(x > 1, 0.0, 0 * (1 - x).sqrt())

    with pytest.raises(
        NumericalError, match=r"gradient .* is not a number .*lower inference.step_size"
    ):
        sample_target("mala", NoSlope(), 300, chains=1, warmup=0, step_size=1.0, seed=1)
