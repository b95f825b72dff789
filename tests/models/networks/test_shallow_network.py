"""Algorithm 1.1 and the variable architecture, compared with quadrature over Gauss–Hermite nodes
and with the joint law of weights and data."""

import itertools
import math

import numpy as np
import pytest
import torch
from support.runs.configured import F64, build_model, component, double, generator, normal
from support.small.small_problems import train
from support.targets.rank_test import Rows, two_sample_p
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.inference.log_joint import log_joint
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

KNOWN = {"hyperparameters": "known", "noise_sd": 0.5, "gamma_sd": 1.5, "beta_sd": 1.2}


def problem(n=6):
    """A noisy step of one input."""
    g = generator(0)
    x = torch.linspace(-1.5, 1.5, n, dtype=F64)[:, None]
    y = 1.5 * (3 * x).sigmoid() - 0.5 + 0.3 * normal(g, n, 1)
    rows = Batch(x, y, torch.ones(n, 1, dtype=torch.bool), 1.0)
    return Supervised("step", "real", rows, rows, None, task_names=["y"])


def network(data, **settings):
    return build_model("shallow_network", data, **settings)


def sample_sweeps(model, data, steps, chains=400):
    """Draws of Gibbs sweeps [C, N, P]."""
    inference = component("inference", "gibbs", chains=chains, burn_in=15)
    state, _ = train(inference, model, data, steps, seed=1)
    return inference.posterior(state)


def quadrature(model, data, m, nodes):
    """log p(y | γ) + log weights at the nodes [Q], and E[f | γ, y] at the rows [Q, B]: literal sums
    over Gauss–Hermite nodes of γ_1 … γ_m."""
    prior = model.prior
    X, y = model.rows(data.train)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.log(weights / weights.sum())
    P = prior.columns * m
    grid = double(list(itertools.product(points, repeat=P))).view(-1, m, 2)
    logs = double([sum(w) for w in itertools.product(weights, repeat=P)])
    psi = 1 / (1 + torch.exp(-prior.gamma_sd * grid @ X.T))  # [Q, m, B]
    covariance = prior.beta_sd**2 * psi.mT @ psi
    if prior.linear:
        covariance = covariance + prior.linear_sd**2 * X @ X.T
    noisy = covariance + prior.noise_sd**2 * torch.eye(len(y), dtype=F64)
    value = MultivariateNormal(torch.zeros(len(y), dtype=F64), noisy).log_prob(y)
    f = (covariance @ torch.linalg.solve(noisy, y.expand(len(noisy), -1))[..., None])[..., 0]
    return value + logs, f


def z_values(values, exact):
    """|z| of the means of values [C, N, Q], from independent chains."""
    by_chain = values.mean(1)
    error = by_chain.std(0) / len(by_chain) ** 0.5
    return ((by_chain.mean(0) - exact) / error).abs()


def test_output_weights_are_integrated_out_of_the_likelihood():
    """p(D | γ, ν) is N(y; Z mean, σ² I + Z S² Zᵀ); (a, β) | γ, ν, D has the law of a linear
    model."""
    data = problem()
    model = network(data, units=3)
    theta = model.sample_prior(5, generator(3))
    weights = model.prior.unpack(theta)
    X, y = model.rows(data.train)
    fit = model.marginal(weights, X, y)
    mean, s = model.coefficients(weights)
    drawn = torch.stack(
        [model.draw_coefficients(weights, fit, generator(i))[:, :5] for i in range(300)]
    )  # [S, 5, D]
    for k in range(5):
        Z = torch.cat([X, (X @ weights.gamma[k].T).sigmoid()], 1)
        noise = (-weights.nu.log_tau[k]).exp()
        law = MultivariateNormal(Z @ mean[k], noise * torch.eye(6, dtype=F64) + Z * s[k] ** 2 @ Z.T)
        assert float(fit.value[k]) == pytest.approx(float(law.log_prob(y)), rel=1e-9)
        precision = Z.T @ Z / noise + torch.diag(s[k] ** -2)
        exact = torch.linalg.solve(precision, Z.T @ y / noise + mean[k] / s[k] ** 2)
        error = torch.linalg.inv(precision).diagonal().sqrt() / 300**0.5
        assert (((drawn[:, k].mean(0) - exact) / error).abs() < 4.5).all()


def test_moments_of_one_unit_match_quadrature():
    data = problem()
    model = network(data, units=1, linear=False, **KNOWN)
    value, f = quadrature(model, data, 1, 40)
    exact = value.softmax(0) @ f
    draws = sample_sweeps(model, data, 45)
    with torch.no_grad():
        means = model.predictive(draws.flat, data.test.x).mu[..., 0]
    assert z_values(means.unflatten(0, draws.draws.shape[:2]), exact).max() < 4


def test_probabilities_of_architectures_match_quadrature():
    data = problem()
    model = network(data, units=2, architecture="variable", linear_sd=0.3, **KNOWN)
    X, y = model.rows(data.train)
    none = MultivariateNormal(
        torch.zeros(6, dtype=F64), 0.09 * X @ X.T + 0.25 * torch.eye(6, dtype=F64)
    ).log_prob(y)
    evidence = [
        none,
        *(quadrature(model, data, m, n)[0].logsumexp(0) for m, n in ((1, 24), (2, 9))),
    ]
    exact = (torch.stack(evidence) + double([0.5, 0.25, 0.25]).log()).softmax(0)
    draws = sample_sweeps(model, data, 35, chains=300)
    assert draws.names == ["units", "p_0_units", "p_1_units", "p_2_units"]
    assert z_values(draws.values[..., 1:], exact).max() < 4
    assert (exact - torch.tensor([0.5, 0.25, 0.25])).abs().max() > 0.1  # the data matter


def joint_model(**settings):
    """A shallow network with a data set for each chain."""
    data = problem(4)
    model = network(data, beta_sd=2.0, noise_sd=0.5, shape=6.0, degrees=6.0, **settings)
    X = torch.cat([torch.ones(4, 1, dtype=F64), data.train.x], 1)
    model.rows = lambda batch: (X, batch.y)
    model.log_likelihood = lambda theta, batch: residual_density(model, theta, X, batch.y)

    def sample_data(theta, g):
        weights = model.prior.unpack(theta)
        z = normal(g, len(theta), 4)
        return Rows(model.function(weights, X) + (-0.5 * weights.nu.log_tau)[:, None].exp() * z)

    model.sample_data = sample_data
    return model


def residual_density(model, theta, X, y):
    weights = model.prior.unpack(theta)
    deviation = (-0.5 * weights.nu.log_tau)[:, None].exp()
    return Normal(model.function(weights, X), deviation).log_prob(y)


def statistics(model, theta, batch):
    """All parameters, the first unit's parameters, and their products with the data."""
    weights = model.prior.unpack(theta)
    nu = weights.nu
    fit = weights.beta[:, :1] * weights.gamma[:, 0]
    residual = (batch.y - model.function(weights, model.rows(batch)[0])).square().sum(1)
    gradients = torch.stack(
        [weights.m, nu.mu_beta, nu.log_tau_beta, nu.log_tau, residual, residual.log() + nu.log_tau],
        1,
    )
    entries = nu.factor.flatten(1)[:, [0, 2, 3]]
    return torch.cat([gradients, nu.mu_gamma, entries, fit, weights.gamma[:, 0], weights.beta], 1)


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_sweeps_leave_the_joint_law_invariant(scan):
    model = joint_model(units=2, architecture="variable")
    p = two_sample_p("gibbs", model, 1500, 4, statistics=statistics, burn_in=0, scan=scan)
    assert p > 1e-3


def test_log_joint_matches_the_law_of_the_sweeps():
    """Random walks on θ, which use only the log joint, have the same invariant distribution."""
    model = joint_model(units=1, linear=False)
    p = two_sample_p(
        "random_walk_mh", model, 2000, 25, statistics=statistics, warmup=0, step_size=0.6
    )
    assert p > 1e-3


def test_printed_order_is_detected_as_wrong():
    """β is drawn before γ, so that ν is drawn with a β of another γ (Algorithm 1.1, steps 3 to
    9)."""
    model = joint_model(units=2)
    whole = model.draw_block

    def draw_in_printed_order(block, theta, batch, generator):
        after = whole(block, theta, batch, generator)
        if block == "weights":  # γ moves, (a, β) is unchanged
            old = model.prior.unpack(theta)
            new = model.prior.unpack(after)
            after = model.prior.pack(new._replace(a=old.a, beta=old.beta))
        return after

    def first(block, theta, batch, generator):
        if block == "weights":
            weights = model.prior.unpack(theta)
            fit = model.marginal(weights, *model.rows(batch))
            theta = model.draw_coefficients(weights, fit, generator)
        return draw_in_printed_order(block, theta, batch, generator)

    model.draw_block = first
    assert two_sample_p("gibbs", model, 3000, 4, statistics=statistics, burn_in=0) < 1e-6


def test_sampler_that_changes_the_number_of_units_is_refused():
    data = problem()
    model = network(data, architecture="variable")
    inference = component("inference", "hmc", chains=2)
    with pytest.raises(ConfigMismatchError, match="inference=gibbs"):
        inference.init(model, data, Streams(0))
    theta = model.sample_prior(3, generator(0))
    theta[:, model.prior.pieces[:3][0] + 5 + 10] += 0.3
    with pytest.raises(ConfigMismatchError, match="discrete; use inference=gibbs"):
        log_joint(model, theta, data.train)


def test_degrees_of_freedom_below_the_inputs_are_refused():
    with pytest.raises(ConfigMismatchError, match=r"model\.degrees=.*; raise it"):
        network(problem(), degrees=1.0)


def test_prior_of_the_number_of_units_is_truncated_geometric():
    model = network(problem(), units=3, architecture="variable", continuation=0.4)
    shares = model.prior.log_units(torch.ones(1, dtype=F64)).exp()
    assert_close(shares.tolist(), [0.6, 0.24, 0.096, 0.064])
    assert math.isclose(float(shares.sum()), 1.0, rel_tol=1e-12)
