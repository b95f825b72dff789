"""Coordinate ascent: bounds compared with quadrature, fixed points in closed form, and bounds that
never decrease."""

import math
from dataclasses import replace

import pytest
import torch
from scipy import integrate, optimize, stats
from support.runs.configured import component, double, load
from support.small.small_problems import advance
from support.targets.mean_field_families import (
    F64,
    build_model,
    check_draws,
    fit_factors,
    grid,
    labels,
    log_joint,
    rows,
    two_parameters,
)
from torch.nn import functional as F
from torch.testing import assert_close

from components.errors import ConfigMismatchError, NumericalError
from runner.execution.rng import Streams

MODELS = two_parameters()


@pytest.mark.parametrize("name", MODELS)
def test_bound_matches_expectation(name):
    """L(q) = E_q[log p(y, θ) − log q(θ)] (5.3) by quadrature; a local bound is at most this
    value."""
    model, problem = MODELS[name]
    ascent = model.mean_field()
    for cycles in (0, 1, 50):
        factors = fit_factors(ascent, problem.train, cycles)
        theta, area = grid(ascent, factors)
        log_q = ascent.log_density(factors, theta)
        mass = log_q.exp() * area
        assert mass.sum() == pytest.approx(1, abs=2e-4)
        literal = float((mass * (log_joint(model, theta, problem.train) - log_q)).sum())
        value = float(ascent.objective(factors, problem.train)[0])
        if name in ("normal_gamma", "linear_regression"):
            assert value == pytest.approx(literal, abs=5e-3)
        else:
            assert value < literal + 1e-6
    evidence = float((log_joint(model, theta, problem.train)).logsumexp(0)) + math.log(area)
    assert literal < evidence + 1e-3
    assert evidence - value < 1.5
    check_draws(ascent, factors, (mass[:, None] * theta).sum(0))


@pytest.mark.parametrize("name", [*MODELS, "gaussian_mixture"])
def test_bound_never_falls_and_a_fall_stops_the_run(name):
    if name == "gaussian_mixture":
        problem, _ = load("mixture_sim", n_train=40, n_test=5)
        model = component("model", name)
    else:
        problem = MODELS[name][1]
        model = None
    inference = component("inference", "cavi", starts=3, draws=20)
    rng = Streams(0)
    built = MODELS[name][0] if model is None else model.build(problem, rng)
    state = inference.init(built, problem, rng)
    values = [state.objective]
    for _, batch in problem.batches("whole", rng, 0, 40):
        state, info = inference.step(state, batch, rng)
        values.append(state.objective)
    gains = torch.stack(values).diff(dim=0)
    assert (gains > -1e-9).all()
    assert float(info["elbo"]) == state.objective.max()
    assert set(inference.posterior(state).scores()) == {"nelbo"}
    with pytest.raises(NumericalError, match=r"objective .* decreased by 1 nats"):
        inference.step(replace(state, objective=state.objective + 1), batch, rng)


def test_normal_reaches_fixed_point_with_small_variance():
    """b (1 − 1/2a) = b_0 + ½S, from eqs. (10.27) and (10.30) of Bishop (2006); the exact posterior
    is normal–gamma."""
    model, problem = MODELS["normal_gamma"]
    factors = fit_factors(model.mean_field(), problem.train)
    m, kappa, a_n, b_n = model.exact(problem.train)
    a = factors["a"][0]
    b = factors["b"][0]
    assert float(a) == model.a + 0.5 * 6
    assert float(b) * (1 - 1 / (2 * float(a))) == pytest.approx(b_n, rel=1e-10)
    assert float(factors["m"]) == m
    exact = b_n / (kappa * (a_n - 1))  # of the Student t of μ
    assert float(1 / factors["lambda"]) == pytest.approx(b_n / (kappa * (a_n)), rel=1e-10)
    assert (1 / factors["lambda"]) < exact
    assert float(a / b) == pytest.approx(a_n / b_n, rel=1e-10)  # E τ is correct …
    assert (a / b**2) < a_n / b_n**2 * (a_n + 0.5) / a_n  # … and its variance is not
    x = double([[0.3], [2.0]])
    q = model.mean_field()
    for row, value in zip(
        x, q.log_predictive(factors, replace(problem.train, x=x))[0], strict=True
    ):

        def density(tau, row=row):
            sd = math.sqrt(1 / tau + float(1 / factors["lambda"]))
            return stats.norm.pdf(float(row), m, sd) * stats.gamma.pdf(
                tau, float(a), scale=1 / float(b)
            )

        assert float(value) == pytest.approx(math.log(integrate.quad(density, 0, 50)[0]), abs=1e-6)


def divergence_from_prior(m, V):
    """KL[N(m, V) ‖ N(0, 1.5² I)] in the plane."""
    eye = torch.eye(2, dtype=F64)
    q, prior = (
        torch.distributions.MultivariateNormal(*law) for law in ((m, V), (0 * m, 2.25 * eye))
    )
    return torch.distributions.kl_divergence(q, prior)


def test_probit_mean_is_mode():
    """E_q[log p(y, z, β) − log q(z) q(β)] with moments and entropies of truncated normals from
    scipy."""
    problem = labels(n=5, D=2)
    model = build_model("probit_regression", problem, intercept_scale=None, prior_scale=1.5)
    ascent = model.mean_field()
    factors = fit_factors(ascent, problem.train, 3)
    m = factors["m"][0]
    V = factors["V"][0]
    X, y = model.select(problem.train)
    literal = 0.0
    for x, label in zip(X, y.tolist(), strict=True):
        f = float(x @ m)
        spread = float(x @ V @ x)
        ends = (-f, 20.0) if label else (-20.0, -f)  # scipy has no entropy of a half line
        cut = stats.truncnorm(*ends, loc=f)
        square = cut.var() + cut.mean() ** 2 - 2 * cut.mean() * f + f**2 + spread  # E(z − xᵀβ)²
        literal += -0.5 * math.log(2 * math.pi) - 0.5 * square + float(cut.entropy())
    literal -= float(divergence_from_prior(m, V))
    assert float(ascent.objective(factors, problem.train)) == pytest.approx(literal, rel=1e-9)
    mode = optimize.minimize(
        lambda b: -float(log_joint(model, torch.tensor(b)[None], problem.train)), [0.0, 0.0]
    ).x
    assert fit_factors(ascent, problem.train, 2000)["m"][0].tolist() == pytest.approx(
        mode.tolist(), abs=1e-4
    )


def test_logistic_cycle_matches_jaakkola_jordan():
    """Bishop (2006), eqs. (10.156), (10.157), (10.163) and (10.164), row by row."""
    problem = labels(D=2)
    model = build_model("logistic_regression", problem, intercept_scale=None, prior_scale=1.5)
    ascent = model.mean_field()
    factors = fit_factors(ascent, problem.train, 2)
    m = factors["m"][0]
    V = factors["V"][0]
    X, y = model.select(problem.train)
    xi = torch.stack([(x @ (V + torch.outer(m, m)) @ x).sqrt() for x in X])
    curve = [(torch.sigmoid(e) - 0.5) / (2 * e) for e in xi]
    bound = sum(
        F.logsigmoid(e) - e / 2 + (label - 0.5) * (x @ m)
        for e, x, label in zip(xi, X, y, strict=True)
    )
    bound = bound - divergence_from_prior(m, V)
    assert_close(ascent.objective(factors, problem.train)[0], bound)
    after = ascent.cycle(factors, problem.train)
    precision = torch.eye(2, dtype=F64) / 2.25 + sum(
        2 * c * torch.outer(x, x) for c, x in zip(curve, X, strict=True)
    )
    assert_close(after["V"][0], torch.linalg.inv(precision))
    assert_close(
        after["m"][0], after["V"][0] @ sum((label - 0.5) * x for x, label in zip(X, y, strict=True))
    )


def test_linear_regression_reaches_fixed_point():
    model, problem = MODELS["linear_regression"]
    factors = fit_factors(model.mean_field(), problem.train)
    coefficients = model.coefficients(problem.train)
    b_n = coefficients.noise_posterior(*model.noise)[1]
    a = float(factors["a"])
    b = float(factors["b"])
    assert b * (1 - 1 / (2 * a)) == pytest.approx(float(b_n), rel=1e-9)  # D = 1
    assert_close(factors["V"][0], b / a * coefficients.covariance)
    assert model.mean_field().objective(factors, problem.train) < model.log_evidence(problem.train)


def test_best_of_several_starts_is_kept():
    problem, rng = load("mixture_sim", n_train=60, n_test=20, clusters=4)
    inference = component("inference", "cavi", starts=12, draws=10)
    state = inference.init(
        component("model", "gaussian_mixture", clusters=4).build(problem, rng), problem, rng
    )
    state, _ = advance(inference, state, problem, rng, 0, 100)
    # the bound has several optima
    assert (state.objective.max() - state.objective.min()) > 0.5
    posterior = inference.posterior(state)
    assert -posterior.scores()["nelbo"] == pytest.approx(float(state.objective.max()))
    assert set(posterior.figures()) == {"bound_by_start"}
    scores = problem.score(posterior, rng)
    assert {"nlpp", "ari", "clusters", "mean/pi1", "sd/mu4/2"} <= set(scores)


def test_multivariate_normal_is_refused():
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset=few .*; use model=gaussian_mixture",
    ):
        build_model("normal_gamma", rows(D=2))
