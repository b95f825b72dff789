"""Power EP: exact on linear regressions, stationary points of equation 21, its limits."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, load
from support.small.small_problems import advance
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.errors import NumericalError

PROBIT = {"n_train": 25, "n_test": 20, "beta": [1.5], "intercept": 0.5}


def fit_posterior(dataset, model, steps=40, data=None, keys=None, **method):
    problem, rng = load(dataset, **(data or {}))
    built = component("model", model, **(keys or {})).build(problem, rng)
    inference = component("inference", "power_ep", **({"draws": 10} | method))
    state = inference.init(built, problem, rng)
    state, info = advance(inference, state, problem, rng, 0, steps)
    return inference, state, info, problem, built


def probit(steps, **method):
    return fit_posterior("binary_simulation", "probit_regression", steps, PROBIT, **method)


def moments(inference, state):
    q = inference.gaussians(state)
    return q.mean, torch.cholesky_inverse(q.chol)


def plane(n=301):
    """θ [G, 2] around the two parameters of the probit regression, and the area of a point."""
    side = torch.linspace(-4, 6, n, dtype=F64)
    return torch.cartesian_prod(side, side), (10 / (n - 1)) ** 2


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_linear_regression_is_exact_for_every_alpha(alpha):
    inference, state, info, problem, model = fit_posterior(
        "linear_simulation",
        "linear_regression",
        3,
        {"n_train": 15, "n_test": 5},
        {"noise": 4.0},
        alpha=alpha,
        damping=1.0,
    )
    X = torch.cat([torch.ones(15, 1, dtype=F64), problem.train.x], 1)
    y = problem.train.y[:, 0]
    s2 = model.gaussian_prior().square()
    precision = X.T @ X / 4.0 + (1 / s2).diag()
    mean, covariance = moments(inference, state)
    assert_close(mean, torch.linalg.solve(precision, X.T @ y / 4.0))
    assert_close(covariance, torch.linalg.inv(precision))
    marginal = X @ s2.diag() @ X.T + 4.0 * torch.eye(15, dtype=F64)
    evidence = float(MultivariateNormal(torch.zeros(15, dtype=F64), marginal).log_prob(y))
    value = info["elbo" if alpha == 0 else "objective"]
    assert float(value) == pytest.approx(evidence, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_tilted_moments_match_q(alpha):
    """q f̃_n^−α p(y_n|θ)^α integrated over the plane, for several rows."""
    inference, state, *_, problem, model = probit(60, alpha=alpha)
    mean, covariance = moments(inference, state)
    theta, _ = plane()
    log_q = MultivariateNormal(mean, covariance).log_prob(theta)
    for n in (0, 7, 24):
        u = theta @ state.a[n]
        site = state.nu[n] * u - 0.5 * state.tau[n] * u.square()
        row = problem.train.part(slice(n, n + 1), 1.0)
        tilted = (log_q + alpha * (model.log_likelihood(theta, row)[:, 0] - site)).softmax(0)
        tilted_mean = tilted @ theta
        centred = theta - tilted_mean
        assert_close(tilted_mean, mean, rtol=0, atol=1e-5)
        assert_close(centred.T @ (tilted[:, None] * centred), covariance, rtol=0, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_objective_matches_equation_21(alpha):
    """Sites after a few sweeps, with normalisers and expectations by sums over the plane."""
    inference, state, *_, problem, model = probit(4, alpha=alpha)
    theta, area = plane()
    log_prior = model.log_prior(theta)
    u = theta @ state.a.T
    sites = state.nu * u - 0.5 * state.tau * u.square()  # [G, N]
    log_z_p = 0.5 * float((2 * math.pi * model.gaussian_prior().square()).log().sum())
    # exponential forms without normalisers: log ∫ exp(η·φ) of q and of the prior
    unnormalised = log_prior + log_z_p + sites.sum(1)
    log_z_q = unnormalised.logsumexp(0) + math.log(area)
    log_q = (unnormalised - log_z_q)[:, None]
    power = alpha * (model.log_likelihood(theta, problem.train) - sites)
    expected = log_z_q - log_z_p + ((log_q + power).logsumexp(0) + math.log(area)).sum() / alpha
    q = inference.gaussians(state)
    objective = inference.objective(state, q, inference.tilt(state, q))
    assert float(objective) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_converged_objective_is_stationary_in_every_site(alpha):
    """L of (21) is stationary in every site."""
    inference, state, *_ = probit(80, alpha=alpha, nodes=64)

    def value(tau, nu):
        shifted = replace(state, tau=tau, nu=nu)
        q = inference.gaussians(shifted)
        return inference.objective(shifted, q, inference.tilt(shifted, q))

    tau = state.tau.clone().requires_grad_()
    nu = state.nu.clone().requires_grad_()
    gradients = torch.autograd.grad(value(tau, nu), [tau, nu])
    early = probit(1, alpha=alpha, nodes=64)[1]
    start = early.tau.clone().requires_grad_(), early.nu.clone().requires_grad_()
    begin = torch.autograd.grad(value(*start), start)
    for end, first in zip(gradients, begin, strict=True):
        assert end.abs().max() < 1e-5
        assert first.abs().max() > 1e-3


def test_alpha_0_is_best_variational_gaussian():
    """The objective, stationary in every site, is the bound integrated over the plane; small α
    tends to it."""
    inference, state, info, problem, model = probit(60, alpha=0.0)
    mean, covariance = moments(inference, state)
    theta, area = plane()
    log_joint = model.log_prior(theta) + model.log_likelihood(theta, problem.train).sum(1)
    log_q = MultivariateNormal(mean, covariance).log_prob(theta)
    best = float((log_q.exp() * (log_joint - log_q)).sum() * area)
    assert float(info["elbo"]) == pytest.approx(best, abs=1e-5)
    evidence = float(log_joint.logsumexp(0)) + math.log(area)
    assert best < evidence
    near = probit(60, alpha=1e-3)
    assert_close(moments(near[0], near[1])[0], mean, rtol=0, atol=1e-3)


def test_expectation_propagation_is_nearer_to_evidence():
    """Errors compared with sums over the plane fall from α = 0 to 1, but only slightly, because
    each row is a small part of the data (below eq. 25: α/N → 0)."""
    evidences = []
    spreads = []
    for alpha in (0.0, 0.5, 1.0):
        inference, state, info, problem, model = probit(60, alpha=alpha)
        theta, area = plane()
        log_joint = model.log_prior(theta) + model.log_likelihood(theta, problem.train).sum(1)
        weight = log_joint.softmax(0)
        centred = theta - weight @ theta
        exact = weight @ centred.square()
        value = info["elbo" if alpha == 0 else "objective"]
        evidences.append(abs(float(value - log_joint.logsumexp(0)) - math.log(area)))
        spreads.append(float((moments(inference, state)[1].diagonal() / exact - 1).abs().max()))
    for errors in (evidences, spreads):
        assert errors == sorted(errors, reverse=True)
        assert errors[2] < 0.95 * errors[0]
        assert errors[0] < 0.12


def test_one_probit_row_matches_closed_form():
    """One row: q has the moments of N(u | 0, v) Φ(y u) (Rasmussen and Williams 2006, eq. 3.85)."""
    inference, state, _, problem, _model = fit_posterior(
        "binary_simulation",
        "probit_regression",
        60,
        PROBIT | {"n_train": 1},
        {"intercept_scale": 1.0},
        alpha=1.0,
        nodes=64,
    )
    q = inference.gaussians(state)
    v = float(state.a[0].square() @ (1 / state.prior_precision))
    row = torch.cat([torch.ones(1, dtype=F64), problem.train.x[0]])
    scale = float(row.norm())
    sign = 2 * float(problem.train.y[0, 0]) - 1
    mean = math.sqrt(2 / math.pi) * scale * v / math.sqrt(1 + scale**2 * v)
    variance = v - 2 / math.pi * (scale * v) ** 2 / (1 + scale**2 * v)
    direction = math.copysign(1.0, float(state.a[0] @ row))
    assert float(q.mu[0]) == pytest.approx(sign * direction * mean, rel=1e-4)
    assert float(q.v[0]) == pytest.approx(variance, rel=1e-4)


def test_unlabelled_rows_have_no_site():
    problem, rng = load("binary_simulation", **PROBIT)
    problem.train.mask[3] = False
    built = component("model", "logistic_regression").build(problem, rng)
    inference = component("inference", "power_ep", draws=5)
    state = inference.init(built, problem, rng)
    assert 3 not in state.rows
    assert len(state.tau) == 24
    state, _ = inference.step(state, problem.train, rng)
    assert inference.posterior(state).flat.shape == (10, 2)


def test_improper_cavity_is_reported():
    inference, state, *_ = probit(2)
    q = inference.gaussians(state)
    with pytest.raises(NumericalError, match="a cavity has precision"):
        inference.tilt(state, q._replace(v=1e6 * q.v))
