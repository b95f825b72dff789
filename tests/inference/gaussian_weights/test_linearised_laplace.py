"""Linearised Laplace: exact for a linear network, and compared term by term with literal formulas
for others."""

import math

import pytest
import torch
from support.runs.configured import F64, generator
from support.small.small_problems import classes, component, linear_posterior, real, train
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.gaussian_weights.linearised import gauss_newton, jacobian
from runner.execution.rng import Streams

LINEAR = component("model", "mlp", widths=[], prior_std=0.8, noise=0.09)
TANH = component("model", "mlp", widths=[4], activation="tanh", prior_std=0.8, noise=0.09)


def laplace(**changes):
    return component("inference", "laplace", **({"hyperparameters": "trained"} | changes))


def posterior_at(problem, model, theta=None, **changes):
    """Posterior at a given θ̂."""
    inference = laplace(**changes)
    rng = Streams(0)
    state = inference.init(model.build(problem, rng), problem, rng)
    if theta is not None:
        with torch.no_grad():
            state.network.theta.copy_(theta)
    return inference.posterior(state)


def exact(problem, s2=0.64, v=0.09):
    """Mean, covariance and log evidence of the conjugate regression of one task: the prior
    predictive of y is a Gaussian."""
    mean, precision = linear_posterior(problem, v, s2)
    x = torch.cat([problem.train.x, torch.ones(problem.n, 1, dtype=F64)], 1)
    y = problem.train.y[:, 0]
    covariance = v * torch.eye(len(y), dtype=F64) + s2 * x @ x.T
    marginal = torch.distributions.MultivariateNormal(torch.zeros_like(y), covariance)
    return mean[:, 0], torch.linalg.inv(precision), float(marginal.log_prob(y))


def test_conjugate_regression_is_exact():
    problem = real(n_tasks=1, missing=0.0)
    mean, covariance, evidence = exact(problem)
    posterior = posterior_at(problem, LINEAR, mean)
    actual = torch.cholesky_inverse(posterior.root)
    assert_close(actual, covariance)
    assert posterior.scores()["log_evidence"] == pytest.approx(evidence)
    prediction = posterior.predict(problem.test.x, torch.Generator())
    x = torch.cat([problem.test.x, torch.ones(problem.n, 1, dtype=F64)], 1)
    assert_close(prediction.mean[:, 0], x @ mean)
    assert_close(prediction.variance[:, 0], (x @ covariance * x).sum(1) + 0.09)
    assert len(prediction.mu) == 1


def test_training_ends_at_mode():
    problem = real(n_tasks=1, missing=0.0)
    state, _ = train(laplace(lr=0.05), LINEAR, problem, 400)
    assert_close(state.network.theta.detach(), exact(problem)[0], atol=1e-4, rtol=0)


def test_jacobian_matches_autograd():
    problem = classes(n_tasks=2)
    network = component("model", "mlp", widths=[4, 3], activation="tanh").build(problem, Streams(0))
    x = problem.train.x[:3]
    f, J = jacobian(network, x, len(network.theta))
    assert_close(f, network(x).detach())
    whole = torch.autograd.functional.jacobian(
        lambda theta: network.outputs(theta[None], x)[0], network.theta.detach()
    )
    assert_close(J, whole)
    assert_close(jacobian(network, x, 5)[1], whole[..., -5:])


def test_gauss_newton_matches_literal_sum():
    problem = classes(n=7, n_tasks=2)
    network = component("model", "mlp", widths=[3], activation="tanh").build(problem, Streams(0))
    P = len(network.theta)
    _, J = jacobian(network, problem.train.x, P)
    p = network(problem.train.x).detach().softmax(-1)
    G = torch.zeros(P, P, dtype=F64)
    for b in range(7):
        for t in range(2):
            if problem.train.mask[b, t]:
                G += J[b, t].T @ (p[b, t].diag() - torch.outer(p[b, t], p[b, t])) @ J[b, t]
    assert_close(gauss_newton(network, problem.train, P, False), G)
    assert_close(gauss_newton(network, problem.train, P, True), G.diagonal())
    real_one = real(n=7, n_tasks=2)
    network = TANH.build(real_one, Streams(0))
    P = len(network.theta)
    _, J = jacobian(network, real_one.train.x, P)
    kept = J[..., 0, :][real_one.train.mask]
    assert_close(gauss_newton(network, real_one.train, P, False), kept.T @ kept / 0.09)


def test_last_layer_and_diagonal_are_parts_of_full_curvature():
    problem = real()
    full = posterior_at(problem, TANH)
    H = full.root @ full.root.T
    last = posterior_at(problem, TANH, structure="last_layer")
    m = 2 * 4 + 2
    assert_close(last.root @ last.root.T, H[-m:, -m:])
    diagonal = posterior_at(problem, TANH, structure="diagonal")
    assert_close(diagonal.root.square(), H.diagonal())
    x = problem.test.x
    none = torch.Generator()
    _, J = jacobian(diagonal.network, x, len(H))
    expected = (J[..., 0, :].square() / H.diagonal()).sum(-1) + 0.09
    assert_close(diagonal.predict(x, none).variance, expected)


@pytest.mark.parametrize("structure", ["full", "diagonal", "last_layer"])
def test_class_predictions_use_linearised_draws(structure):
    problem = classes(n=20)
    model = component("model", "mlp", widths=[4], activation="tanh")
    posterior = posterior_at(problem, model, structure=structure, n_predict=40_000)
    x = problem.test.x[:4]
    f, J = jacobian(posterior.network, x, len(posterior.root))
    root = posterior.root.diag() if structure == "diagonal" else posterior.root
    covariance = J @ torch.linalg.inv(root @ root.T) @ J.mT  # [B, T, C, C]
    centred = posterior.predict(x, generator(0)).logits - f
    error = (covariance.diagonal(dim1=-2, dim2=-1) / 40_000).sqrt()
    assert (centred.mean(0) / error).abs().max() < 4.5
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)  # [S, B, T, C, C]
    assert z_score(products, covariance).abs().max() < 4.5


def test_real_label_draws_match_closed_form_moments():
    problem = real()
    posterior = posterior_at(problem, TANH, hyperparameters="evidence")
    x = problem.test.x[:5]
    closed = posterior.predict(x, torch.Generator())
    draws = posterior.some(40_000, torch.Generator()).predict(x, generator(1))
    assert ((draws.mean - closed.mean) / (closed.variance / 40_000).sqrt()).abs().max() < 4.5
    assert_close(draws.variance, closed.variance, rtol=0.03, atol=0)
    held = posterior.some(3, None)
    assert torch.equal(held.predict(x, generator(1)).mu, held.predict(x, torch.Generator()).mu)


@pytest.mark.parametrize("problem", [real(), classes()], ids=["real", "classes"])
def test_evidence_is_stationary_in_both_factors(problem):
    model = component("model", "mlp", widths=[4], activation="tanh", noise=0.09)
    state, _ = train(laplace(lr=0.02), model, problem, 150)
    s = state.network.prior_std.double()
    G = gauss_newton(state.network, problem.train, len(s), False)
    evidence = laplace().evidence(state.network, problem.train, G, s)
    c, kappa = evidence.maximum()
    step = 1e-4
    is_real = problem.target == "real"
    for a, b in [(math.exp(step), 1.0)] + is_real * [(1.0, math.exp(step))]:
        gain = evidence.value(c * a, kappa * b) - evidence.value(c / a, kappa / b)
        assert gain / (2 * step) == pytest.approx(0.0, abs=1e-3)
    assert evidence.value(c, kappa) > evidence.value(1.0, 1.0)
    assert (kappa != 1.0) == is_real


def test_evidence_matches_formula_at_any_factors():
    """log p(D|θ̂) + log p(θ̂) + P/2 log 2π − ½ log|H|, with scaled variances."""
    problem = real()
    state, _ = train(laplace(), TANH, problem, 30)
    network = state.network.requires_grad_(False)
    s = network.prior_std
    P = len(network.theta)
    G = gauss_newton(network, problem.train, P, False)
    evidence = laplace().evidence(network, problem.train, G, s).value(2.5, 0.7)
    mu = network(problem.train.x)[..., 0]
    normal = torch.distributions.Normal(mu, math.sqrt(0.7 * 0.09))
    fit = normal.log_prob(torch.where(problem.train.mask, problem.train.y, 0.0))[
        problem.train.mask
    ].sum()
    prior = torch.distributions.Normal(0.0, s * math.sqrt(2.5)).log_prob(network.theta).sum()
    H = G / 0.7 + (1 / (2.5 * s**2)).diag()
    expected = fit + prior + 0.5 * P * math.log(2 * math.pi) - 0.5 * torch.logdet(H)
    assert evidence == pytest.approx(float(expected))


def test_predictions_are_differentiable_in_x():
    for problem, model in (
        (real(n_tasks=1), TANH),
        (classes(), component("model", "mlp", widths=[4], activation="tanh")),
    ):
        posterior = posterior_at(problem, model, n_predict=3)
        y = problem.test.y[:2]

        def value(x, posterior=posterior, y=y):
            return posterior.predict(x, generator(0)).log_prob(y).sum()

        assert torch.autograd.gradcheck(value, problem.test.x[:2].clone().requires_grad_())


def test_nonfinite_mode_is_reported():
    with pytest.raises(NumericalError, match=r"lower inference\.lr"):
        posterior_at(real(), TANH, torch.nan)
