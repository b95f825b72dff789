"""Distances from the normal limit, compared with quadrature and closed forms, and their rates."""

import math
from itertools import pairwise

import pytest
import torch
from scipy import integrate, optimize, stats
from support.runs.configured import F64, component, double, load

from components.inference.foundations.normal_limit import beta_normal_distances, gaussian_hellinger
from runner.execution.rng import Streams


@pytest.mark.parametrize(("a", "b"), [(4.0, 9.0), (1.0, 5.0), (130.0, 300.0)])
def test_beta_normal_distances_match_quadrature(a, b):
    mean = a / (a + b) + 0.02
    sd = 1.1 * stats.beta(a, b).std()
    p = stats.beta(a, b).pdf
    q = stats.norm(mean, sd).pdf
    ends = (mean - 9 * sd, mean + 9 * sd)
    breaks = sorted({0.0, 1.0} & {x for x in (0.0, 1.0) if ends[0] < x < ends[1]})
    total, _ = integrate.quad(lambda x: abs(p(x) - q(x)), *ends, points=breaks or None, limit=500)
    affinity, _ = integrate.quad(lambda x: math.sqrt(p(x) * q(x)), 0, 1, limit=500)
    distances = beta_normal_distances(a, b, mean, sd)
    assert distances[0] == pytest.approx(total / 2, abs=2e-4)
    assert distances[1] == pytest.approx(math.sqrt(1 - affinity), abs=2e-4)
    assert distances[1] ** 2 <= distances[0] <= math.sqrt(2) * distances[1]


def test_gaussian_hellinger_distance_matches_quadrature():
    m = double([0.3])
    n = double([-0.2])
    V = double([[0.5]])
    W = double([[1.4]])
    p = stats.norm(0.3, 0.5**0.5).pdf
    q = stats.norm(-0.2, 1.4**0.5).pdf
    affinity, _ = integrate.quad(lambda x: math.sqrt(p(x) * q(x)), -15, 15)
    assert float(gaussian_hellinger(m, V, n, W)) == pytest.approx(math.sqrt(1 - affinity))
    block = torch.block_diag(V, V)
    two = gaussian_hellinger(m.repeat(2), block, n.repeat(2), torch.block_diag(W, W))
    # distances of independent coordinates multiply
    assert 1 - float(two) ** 2 == pytest.approx(affinity**2)


def measure_distances(theta, prior=1.0, numbers=(100, 1600)):
    problem, _ = load("tosses")
    model = component("model", "beta_bernoulli", a=prior, b=prior).build(problem, Streams(0))
    keys = {"numbers": list(numbers), "theta": theta}
    inference = component("inference", "bernstein_von_mises", **keys)
    rng = Streams(0)
    state = inference.init(model, problem, rng)
    state, _ = inference.step(state, problem.train, rng)
    posterior = inference.posterior(state)
    scores = problem.score(posterior, rng)
    assert scores["slope/hellinger"] == posterior.scores()["slope/hellinger"]
    assert scores["nlpp"] > 0
    return posterior


def test_convergence_rate_follows_skewness():
    """The total variation of a distribution with skewness γ/√N from its normal is about |γ| c/√N, c
    = ∫ |x³ − 3x| φ/12, plus the shift by the prior; with θ = ½ and a symmetric prior both
    vanish."""
    skewed = measure_distances(0.2, 0.5).scores()
    assert skewed["slope/total_variation"] == pytest.approx(-0.5, abs=0.08)
    assert skewed["slope/hellinger"] == pytest.approx(-0.5, abs=0.08)
    assert measure_distances(0.5).scores()["slope/total_variation"] < -0.8
    literal = 0.0
    n = 100
    theta = 0.2
    for k, mass in ((k, stats.binom.pmf(k, n, theta)) for k in range(3, 45)):
        estimate = k / n
        sd = math.sqrt(estimate * (1 - estimate) / n)
        p = stats.beta(0.5 + k, 0.5 + n - k)
        q = stats.norm(estimate, sd)
        crossings = [
            optimize.brentq(lambda x, p=p, q=q: p.logpdf(x) - q.logpdf(x), *ends)
            for ends in (
                (estimate - 3 * sd, estimate - sd),
                (estimate - sd, estimate + sd),
                (estimate + sd, estimate + 3 * sd),
            )
            if (p.logpdf(ends[0]) - q.logpdf(ends[0])) * (p.logpdf(ends[1]) - q.logpdf(ends[1])) < 0
        ]
        gaps = [0.0, *(p.cdf(x) - q.cdf(x) for x in crossings), 0.0]
        literal += mass * 0.5 * sum(abs(b - a) for a, b in pairwise(gaps))
    assert float(measure_distances(theta, 0.5).distances[0, 0]) == pytest.approx(literal, abs=1e-3)


def test_wrong_information_breaks_normal_limit():
    for k, n in ((320, 1600), (1280, 6400)):
        sd = math.sqrt(0.2 / n)  # broken variant: θ̂/n instead of θ̂ (1 − θ̂)/n
        wrong, _ = beta_normal_distances(1.0 + k, 1.0 + n - k, 0.2, sd)
        right, _ = beta_normal_distances(1.0 + k, 1.0 + n - k, 0.2, math.sqrt(0.16 / n))
        assert wrong > 0.05 > 3 * right


def test_regression_reaches_normal_limit_and_process_does_not():
    problem, rng = load("smooth_function", smoothness="line", n_train=40, n_test=20, terms=100)
    inference = component(
        "inference", "posterior_concentration", numbers=[32, 128, 512], simulations=3
    )
    keys = {"noise": 0.1, "prior_scale": 10.0, "intercept_scale": 10.0}
    model = component("model", "linear_regression", **keys).build(problem, rng)
    state = inference.init(model, problem, rng)
    state, _ = inference.step(state, problem.train, rng)
    scores = inference.posterior(state).scores()
    x = (torch.arange(32, dtype=F64)[:, None] + 0.5) / 32
    X = torch.cat([torch.ones(32, 1, dtype=F64), x], 1)
    y = problem.f0(x)
    gram = X.T @ X
    precision = gram + 0.01 * torch.eye(2, dtype=F64)
    mean = torch.linalg.solve(precision, X.T @ y)
    fit = torch.linalg.lstsq(X, y[:, None]).solution[:, 0]
    literal = gaussian_hellinger(mean, 0.1 * precision.inverse(), fit, 0.1 * gram.inverse())
    assert scores["hellinger/32"] == pytest.approx(float(literal))
    assert scores["hellinger/512"] < scores["hellinger/128"] < scores["hellinger/32"]
    assert scores["slope/hellinger"] < -0.4
    process = component("model", "matern_regression").build(problem, rng)
    state = inference.init(process, problem, rng)
    state, _ = inference.step(state, problem.train, rng)
    assert not any("hellinger" in name for name in inference.posterior(state).scores())
