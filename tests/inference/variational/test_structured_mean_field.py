"""Structured mean field: with one factor, q is the posterior and the bound is the evidence; blocks
of coefficients have closed-form covariances and bounds."""

import itertools

import pytest
import torch
from scipy import stats
from support.runs.configured import component
from support.small.small_problems import advance, real
from support.targets.mean_field_families import (
    F64,
    check_draws,
    fit_factors,
    grid,
    log_joint,
    two_parameters,
)
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

MODELS = two_parameters()
PROBLEM = real(n=20, n_inputs=3, n_tasks=1)


def regression(**keys):
    return component("model", "linear_regression", **keys).build(PROBLEM, Streams(0))


def compute_bound(ascent, cycles=400):
    return float(ascent.objective(fit_factors(ascent, PROBLEM.train, cycles), PROBLEM.train))


def gram_of(model):
    X, _ = model.select(PROBLEM.train)
    return X.T @ X + model.penalty.diag()


@pytest.mark.parametrize("name", ["normal_gamma", "linear_regression"])
def test_single_factor_is_exact_posterior(name):
    model, problem = MODELS[name]
    ascent = model.structured_field(["all"])
    for cycles in (0, 1):
        factors = fit_factors(ascent, problem.train, cycles)
        theta, area = grid(ascent, factors)
        log_q = ascent.log_density(factors, theta)
        mass = log_q.exp() * area
        assert mass.sum() == pytest.approx(1, abs=5e-3)
        if cycles == 1:
            joint = log_joint(model, theta, problem.train)
            literal = float((mass * (joint - log_q)).sum() / mass.sum())
            assert float(ascent.objective(factors, problem.train)) == pytest.approx(
                literal, abs=5e-3
            )
            assert (joint - log_q).std() < 1e-8  # q is the posterior, up to a constant
    value = float(ascent.objective(factors, problem.train))
    mean_field = model.mean_field()
    assert (
        value
        > float(mean_field.objective(fit_factors(mean_field, problem.train, 50), problem.train))
        + 0.01
    )
    check_draws(ascent, factors, (mass[:, None] * theta).sum(0))


def test_regression_evidence_is_exact():
    model = regression()
    assert compute_bound(model.structured_field(["all"]), 1) == pytest.approx(
        float(model.log_evidence(PROBLEM.train)), rel=1e-12
    )
    prior = model.structured_field(["all"])
    objective_before = float(prior.objective(fit_factors(prior, PROBLEM.train, 0), PROBLEM.train))
    assert objective_before < model.log_evidence(PROBLEM.train)


def test_predictive_is_student_t():
    model, problem = MODELS["normal_gamma"]
    ascent = model.structured_field(["mu", "tau"])
    factors = fit_factors(ascent, problem.train, 1)
    m, kappa, a, b = model.exact(problem.train)
    x = problem.train.x[:, 0]
    exact = stats.t.logpdf(x.numpy(), 2 * a, m, (b * (kappa + 1) / (a * kappa)) ** 0.5)
    assert_close(ascent.log_predictive(factors, problem.train)[0], torch.as_tensor(exact))


@pytest.mark.parametrize("joint", [["x1"], ["x1", "x3"], ["intercept", "x1", "x2", "x3"]])
def test_blocks_have_conditional_covariance(joint):
    """L(blocks) = L(q(β) q(σ²)) − ½ (Σ_B log det Λ_BB − log det Λ), since b is the same."""
    model = regression()
    ascent = model.structured_field(joint)
    factors = fit_factors(ascent, PROBLEM.train, 400)
    gram = gram_of(model)
    posterior = model.coefficients(PROBLEM.train)
    assert_close(factors["m"][0], posterior.m)
    noise = float(factors["b"][0] / factors["a"][0])
    blocks = [[model.names.index(name) for name in joint]]
    blocks += [[j] for j in range(4) if j not in blocks[0]]
    literal = torch.zeros(4, 4, dtype=F64)
    lost = -float(torch.logdet(gram))
    for block in blocks:
        part = gram[block][:, block]
        lost += float(torch.logdet(part))
        for (i, row), (j, column) in itertools.product(enumerate(block), repeat=2):
            literal[row, column] = noise * torch.linalg.inv(part)[i, j]
    assert_close(factors["V"][0], literal)
    mean_field = model.mean_field()
    assert compute_bound(ascent) == pytest.approx(compute_bound(mean_field) - 0.5 * lost, rel=1e-10)
    # broken: the marginal instead of the conditional covariance
    broken = factors | {"V": torch.diag_embed(noise * torch.linalg.inv(gram).diagonal())[None]}
    if lost > 1e-6:
        assert ascent.objective(broken, PROBLEM.train) < compute_bound(ascent) - 1e-4


def test_coarser_family_has_higher_bound():
    bounds = {}
    for joint in (["x1"], ["x1", "x2"], [], ["all"]):
        inference = component("inference", "cavi", starts=2, draws=20, joint=joint)
        rng = Streams(0)
        state = inference.init(regression(), PROBLEM, rng)
        state, info = advance(inference, state, PROBLEM, rng, 0, 30)
        bounds[tuple(joint)] = float(info["elbo"])
    assert sorted(bounds.values()) == list(bounds.values())
    assert inference.posterior(state).draws.shape == (2, 20, 5)


def test_unknown_parameter_names_are_refused():
    with pytest.raises(
        ConfigMismatchError, match=r"inference\.joint: beta is not a parameter .*; use mu and tau"
    ):
        MODELS["normal_gamma"][0].structured_field(["beta"])
