"""AVB with its discriminator against the prior, without adaptive contrast: equations 7 to 13."""

import math

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator
from support.small.implicit_posteriors import NET, begin
from support.small.small_problems import advance, component, linear_posterior, real
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from components.inference.implicit.contrast import PriorContrast, discrimination_loss
from components.inference.implicit.generator import leaky_perceptron
from components.maths.optimizers import Adam
from runner.execution.rng import Streams


def begin_avb(seed=3, network=NET, **keys):
    return begin("avb", seed, real(n=20, missing=0.0), network, discriminator="prior", **keys)


def train_discriminator(ours, noise, widths=(50, 50), steps=2000, rate=1e-3):
    """T of equation (8) after Adam's steps on draws of ``ours(n)`` and ``noise(n)``."""
    d = ours(1).shape[1]
    T = leaky_perceptron([d, *widths, 1], 0.1, Streams(0), torch.zeros(1))
    optimizer = Adam(T.parameters(), rate)
    for _ in range(steps):
        loss = discrimination_loss(T, ours(256), noise(256))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return T


def test_objective_matches_equation_13():
    inference, state, problem, _ = begin_avb()
    batch = problem.train.part(slice(0, 5), 4.0)
    terms, _ = inference.objective(state, batch, generator(1))
    network = state.q.network
    theta = state.q.of(state.q.noise(6, generator(1)))
    ell = torch.stack(
        [network.log_prob(network.outputs(t[None], batch.x), batch)[0] for t in theta]
    )
    ratio = torch.stack([state.discriminator(t[None] / 0.9)[0, 0] for t in theta])
    expected = 4.0 * ell.mean(0).sum() - ratio.mean() + network.hyperprior()
    assert float(terms["objective"]) == pytest.approx(float(expected), rel=1e-6)
    assert float(terms["kl_estimate"]) == pytest.approx(float(ratio.mean()), rel=1e-6)


def test_discriminator_loss_separates_q_from_prior():
    """Equation (8) for θ/s against N(0, I); the loss of a step is computed at the state before
    it."""
    inference, state, problem, rng = begin_avb()
    T = [p.detach().clone() for p in state.discriminator.parameters()]
    noise = torch.Generator()
    noise.set_state(rng.noise.get_state())
    theta = state.q.of(state.q.noise(6, noise)).detach()
    ours = theta / 0.9
    prior = torch.randn(ours.shape, generator=noise, dtype=ours.dtype)

    def log_sigma(x):
        h = x
        for weight, bias in zip(T[::2], T[1::2], strict=True):
            h = h @ weight.T + bias
            h = torch.where(h > 0, h, 0.2 * h) if weight is not T[-2] else h
        return h[:, 0].sigmoid()

    expected = -log_sigma(ours).log().mean() - (1 - log_sigma(prior)).log().mean()
    _, info = inference.step(state, problem.train, rng)
    assert float(info["discriminator_loss"]) == pytest.approx(float(expected), rel=1e-6)


def test_expected_discriminator_is_kl_to_prior():
    """Equation (7) for a correlated Gaussian q with nonzero mean and unequal spreads."""
    g = generator(0)
    s = torch.tensor([0.5, 2.0])
    mean = torch.tensor([0.3, 1.0])
    factor = torch.tensor([[0.4, 0.0], [0.6, 1.0]])
    exact = kl_divergence(
        MultivariateNormal(mean, scale_tril=factor),
        MultivariateNormal(torch.zeros(2), scale_tril=s.diag()),
    )

    def ours(n):
        return PriorContrast((mean + torch.randn(n, 2, generator=g) @ factor.T) / s).z_scores

    T = train_discriminator(
        ours, lambda n: torch.randn(n, 2, generator=g), (30, 30), 500, rate=4e-3
    )
    with torch.no_grad():
        actual = T(ours(20_000)).mean()
    assert float(actual) == pytest.approx(float(exact), rel=0.1)


def test_learned_prior_follows_kl_derivative():
    """E_q[∂_s T(θ/s)] with T fixed at the log ratio is ∂_s KL(N(m, v) ‖ N(0, s²))."""
    m = 0.8
    sd = 0.5
    s = torch.tensor(1.3, dtype=F64, requires_grad=True)
    u = draw_normal(400_000)
    q = Normal(double(m / 1.3), sd / 1.3)  # of θ/s, fixed at this s
    theta = m + sd * u
    z = PriorContrast(theta[:, None] / s).z_scores[:, 0]
    estimate = (q.log_prob(z) - Normal(0.0, 1.0).log_prob(z)).mean()
    (gradient,) = torch.autograd.grad(estimate, s)
    exact = 1 / 1.3 - (m**2 + sd**2) / 1.3**3
    assert float(gradient) == pytest.approx(exact, abs=5e-3)
    assert float(estimate) == pytest.approx(
        math.log(1.3 / sd) + (sd**2 + m**2) / (2 * 1.3**2) - 0.5, abs=5e-3
    )


def test_conjugate_regression_is_learnt():
    """Means and standard deviations of the weights of a linear model approach the exact
    posterior."""
    linear = component("model", "mlp", widths=[], noise=0.25, prior_std=1.0)
    keys = {"lr": 3e-3, "discriminator_lr": 3e-3, "n_samples": 100, "noise_log_variance": 0.0}
    inference, state, problem, rng = begin_avb(0, linear, discriminator_widths=[30], **keys)
    state, _ = advance(inference, state, problem, rng, 0, 500)
    solved, precision = linear_posterior(problem, 0.25, 1.0)
    mean = torch.cat([solved[:-1].T.flatten(), solved[-1]])  # in the order of θ: W [T, D], b [T]
    theta = state.q.draw(4000, generator(0)).detach()
    assert (theta.mean(0) - mean).abs().max() < (precision.diagonal() ** -0.5).max()
