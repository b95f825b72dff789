"""Adversarial posteriors: a literal objective, its limits, and the discriminator compared with
known log ratios."""

import math

import pytest
import torch
from support.runs.configured import F64, draw_normal, generator
from support.small.implicit_posteriors import KEYS, begin
from support.small.small_problems import advance, component, linear_posterior, real, train
from torch.distributions import MultivariateNormal, Normal
from torch.nn.utils import parameters_to_vector

from components.inference.implicit.contrast import contrast, discrimination_loss
from components.inference.implicit.generator import leaky_perceptron
from components.maths.optimizers import Adam
from runner.execution.rng import Streams


@pytest.mark.parametrize("alpha", [1e-4, 0.5, 1.0])
@pytest.mark.parametrize("rows", ["shared", "own"])
def test_objective_matches_equation_28(alpha, rows):
    inference, state, problem, _ = begin(alpha=alpha, rows=rows, warmup=4)
    state = type(state)(**(vars(state) | {"t": 3}))  # β = 3/4
    batch = problem.train.part(slice(0, 5), 4.0)
    terms, objective = inference.objective(state, batch, generator(1))
    K = 6
    B = 5
    network = state.q.network
    theta = objective.mean + objective.centred
    assert theta.shape[0] == (K if rows == "shared" else K * B)
    fit = 0.0
    for b in range(B):
        row = batch.part(slice(b, b + 1), 1.0)
        mine = theta if rows == "shared" else theta.unflatten(0, (K, B))[:, b]
        ell = torch.stack(
            [network.log_prob(network.outputs(t[None], row.x), row)[0, 0] for t in mine]
        )
        fit = fit + 4.0 * (ell.double() * alpha).exp().mean().log() / alpha
    standardised = (theta - theta.mean(0)) / theta.std(0, correction=0)
    log_r = Normal(theta.mean(0), theta.std(0, correction=0)).log_prob(theta).sum(1)
    log_p = Normal(0.0, 0.9).log_prob(theta).sum(1)
    divergence = (state.discriminator(standardised)[:, 0] + log_r - log_p).mean()
    assert float(terms["data_term"]) == pytest.approx(float(fit), rel=1e-5)
    assert float(terms["kl_estimate"]) == pytest.approx(float(divergence), rel=1e-6)
    whole = fit - 0.75 * divergence + network.hyperprior()
    assert float(terms["objective"]) == pytest.approx(float(whole), rel=1e-5)


def test_small_alpha_follows_avb():
    def path(name, **keys):
        keys |= {"noise_log_variance": 1.0, "initial_std": 0.4}
        inference, state, problem, rng = begin(name, **keys)
        state, _ = advance(inference, state, problem, rng, 0, 200)
        return parameters_to_vector(state.q.parameters()).detach()

    avb = path("avb")
    near, other = ((path("aadm", alpha=alpha) - avb).abs().mean() for alpha in (1e-4, 1.0))
    assert other > 3 * near
    # Adam's first steps have the same length for small and large differences of gradients
    assert near < 2e-3


def test_no_discriminator_gives_kl_of_matched_gaussian():
    theta = draw_normal(400_000, 3)
    theta = theta * torch.tensor([0.3, 1.0, 2.0]) + torch.tensor([0.5, -1.0, 0.0])
    s = torch.full((3,), 1.5, dtype=F64)
    exact = torch.distributions.kl_divergence(
        Normal(torch.tensor([0.5, -1.0, 0.0]), torch.tensor([0.3, 1.0, 2.0])), Normal(0.0, 1.5)
    ).sum()
    assert float(contrast(theta).kl(s, 0.0)) == pytest.approx(float(exact), abs=0.02)
    assert float(contrast(theta[:5]).log_prior(s)) == pytest.approx(
        float(Normal(0.0, 1.5).log_prob(theta[:5]).sum(1).mean())
    )


@pytest.mark.parametrize(
    ("d", "least"), [(2, 0.98), pytest.param(10, 0.95, marks=pytest.mark.slow)]
)
def test_discriminator_finds_gaussian_log_ratio(d, least):
    g = generator(d)
    rho = 0.6 if d == 2 else 0.3
    # unit variances: with adaptive contrast only correlation remains
    covariance = (1 - rho) * torch.eye(d) + rho
    law = MultivariateNormal(torch.zeros(d), covariance)
    noise = MultivariateNormal(torch.zeros(d), torch.eye(d))
    factor = torch.linalg.cholesky(covariance)
    T = leaky_perceptron([d, 50, 50, 1], 0.1, Streams(d), torch.zeros(1))
    optimizer = Adam(T.parameters(), 1e-3)
    for _ in range(3000 if d == 2 else 8000):
        ours = torch.randn(256, d, generator=g) @ factor.T
        loss = discrimination_loss(T, ours, torch.randn(256, d, generator=g))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    theta = torch.randn(20_000, d, generator=g) @ factor.T
    with torch.no_grad():
        ratios = T(theta)[:, 0]
    exact = law.log_prob(theta) - noise.log_prob(theta)
    assert torch.corrcoef(torch.stack([ratios, exact]))[0, 1] >= least
    if d == 2:
        assert ratios.mean() == pytest.approx(-0.5 * math.log(1 - rho**2), rel=0.1)


def test_generator_step_leaves_discriminator_fixed():
    inference, state, problem, rng = begin()
    parameters_before = [p.detach().clone() for p in state.discriminator.parameters()]
    terms, _ = inference.objective(state, problem.train, rng.noise)
    terms["objective"].backward()
    assert all(p.grad is None for p in state.discriminator.parameters())
    state, info = inference.step(state, problem.train, rng)
    assert any(
        not torch.equal(a, b)
        for a, b in zip(parameters_before, state.discriminator.parameters(), strict=True)
    )
    assert 0 < info["discriminator_loss"] < 4
    assert "elbo" not in info


def test_conjugate_regression_is_learnt():
    """Means and standard deviations of the weights of a linear model approach the exact
    posterior."""
    problem = real(n=40, missing=0.0)
    linear = component("model", "mlp", widths=[], noise=0.25, prior_std=1.0)
    keys = {"lr": 3e-3, "discriminator": "none", "n_samples": 50, "noise_log_variance": 0.0}
    state, _ = train(component("inference", "avb", **KEYS | keys), linear, problem, 1500)
    solved, precision = linear_posterior(problem, 0.25, 1.0)
    mean = torch.cat([solved[:-1].T.flatten(), solved[-1]])  # in the order of θ: W [T, D], b [T]
    # the values of independent Gaussians
    deviations = (precision.diagonal() ** -0.5)[:, None].expand_as(solved)
    narrow = torch.cat([deviations[:-1].T.flatten(), deviations[-1]])
    theta = state.q.draw(4000, generator(0)).detach()
    assert ((theta.mean(0) - mean) / narrow).abs().max() < 0.5
    assert (theta.std(0).mean() / narrow.mean()).log().abs() < 0.5
