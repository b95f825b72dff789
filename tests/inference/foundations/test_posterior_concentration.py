"""Contraction rates: smoothers compared with closed forms, simulated radii with expectations,
slopes with theory."""

import math

import pytest
import torch
from support.runs.configured import F64, component, generator, load, normal
from support.small.small_problems import advance
from torch.testing import assert_close

from components.problems.known_function import KnownFunction

NUMBERS = [64, 128, 256, 512]


def measure_rates(data, name, steps=2, numbers=NUMBERS, **model):
    problem, rng = load("smooth_function", **{"n_train": 40, "n_test": 20, "terms": 1000} | data)
    built = component("model", name, **model).build(problem, rng)
    inference = component("inference", "posterior_concentration", numbers=numbers, simulations=20)
    state = inference.init(built, problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, steps)
    return inference.posterior(state), problem, built


@pytest.mark.parametrize(
    ("name", "keys"),
    [("matern_regression", {"shape": "matern52"}), ("linear_regression", {"noise": 0.01})],
)
def test_smoothers_match_posteriors(name, keys):
    problem, rng = load("smooth_function", n_train=12, n_test=5)
    built = component("model", name, **keys).build(problem, rng)
    x = problem.train.x
    y = problem.train.y[:, 0]
    S = built.smoother(x)
    mean, variance = built.condition(x, y, x)
    assert_close(S @ y, mean)
    assert_close(built.known_noise * S.diagonal(), variance)
    if name == "matern_regression":  # K (K + σ² I)⁻¹ with a literal Matérn kernel
        r = math.sqrt(5) * (x - x.T).abs() / built.lengthscale
        K = (1 + r + r.square() / 3) * torch.exp(-r)
        assert_close(S, K @ torch.linalg.inv(K + 0.01 * torch.eye(12, dtype=K.dtype)))


def test_radii_match_posterior_mean_squared_distance():
    record, problem, built = measure_rates(
        {"smoothness": 1.0}, "matern_regression", numbers=[8, 16]
    )
    n = 16
    x = (torch.arange(n, dtype=F64)[:, None] + 0.5) / n
    S = built.smoother(x)
    f0 = problem.f0(x)
    assert_close(record.smoothed[1].f0, f0)
    g = generator(0)
    y = f0 + 0.1 * normal(g, 4000, n)
    errors = ((y @ S.T - f0) ** 2).mean(1)
    assert (
        abs(float(errors.mean()) - record.smoothed[1].expected)
        < 4 * float(errors.std()) / 4000**0.5
    )
    root = torch.linalg.cholesky(0.01 * 0.5 * (S + S.T) + 1e-12 * torch.eye(n, dtype=S.dtype))
    f = S @ y[0] + normal(g, 20_000, n) @ root.T
    literal = (f - f0).square().mean(1)
    exact = float(errors[0]) + record.smoothed[1].spread
    assert abs(float(literal.mean()) - exact) < 4 * float(literal.std()) / 20_000**0.5
    error = record.radii.std(0) / len(record.radii) ** 0.5
    assert ((record.radii.square().mean(0).sqrt() - record.exact).abs() < 5 * error).all()


@pytest.mark.parametrize(
    ("shape", "smoothness", "scale", "noise"),
    [
        ("matern12", 1.5, 1.0, 0.5),
        ("matern32", 1.5, 1.0, 0.1),
        ("matern52", "line", 1.0, 0.1),
        ("matern52", 1.0, 10.0, 0.01),
    ],
)
def test_processes_contract_at_rate_of_theory(shape, smoothness, scale, noise):
    """Slopes of the posterior sd, −α/(2α + 1), and of the radius; for a rougher function the error
    dominates."""
    data = {"smoothness": smoothness, "scale": scale, "noise": noise, "terms": 2000}
    record, *_ = measure_rates(data, "matern_regression", shape=shape, noise=noise)
    alpha = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[shape]
    exponent = -min(alpha, math.inf if smoothness == "line" else smoothness) / (2 * alpha + 1)
    assert record.exponent == pytest.approx(exponent)
    scores = record.scores()
    assert scores["slope_spread"] == pytest.approx(-alpha / (2 * alpha + 1), abs=0.03)
    assert scores["slope_exact"] == pytest.approx(exponent, abs=0.03)
    assert abs(scores["slope"] - scores["slope_exact"]) < 0.02


def test_line_contracts_at_parametric_rate():
    keys = {"noise": 0.01, "prior_scale": 100.0, "intercept_scale": 100.0}
    record, *_ = measure_rates({"smoothness": "line"}, "linear_regression", steps=10, **keys)
    slope, error = record.slope()
    assert record.exponent == -0.5
    assert abs(slope + 0.5) < 4 * error
    assert record.scores()["slope_exact"] == pytest.approx(-0.5, abs=1e-3)
    curve, *_ = measure_rates({"smoothness": 1.5}, "linear_regression", **keys)
    assert curve.exponent == 0
    assert abs(curve.slope()[0]) < 0.03


def test_functions_have_declared_norm_and_coefficients():
    problem, _ = load("smooth_function", smoothness=1.2, terms=50, scale=2.0, n_train=4000)
    assert isinstance(problem, KnownFunction)
    x = problem.train.x
    f = problem.f0(x)
    assert f.square().mean() == pytest.approx(4.0, rel=1e-6)
    c = torch.stack(
        [(f * math.sqrt(2) * torch.cos(math.pi * j * x[:, 0])).mean() for j in (1, 2, 5)]
    ).abs()
    assert_close(c / c[0], torch.tensor([1, 2, 5], dtype=c.dtype) ** -1.7)
    line, _ = load("smooth_function", smoothness="line", scale=2.0, n_train=4000)
    assert line.f0(x).square().mean() == pytest.approx(4.0, rel=1e-6)
