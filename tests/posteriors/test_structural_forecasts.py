"""Forecasts of structural series, compared with the dense Gaussian of past and future
observations."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import double, draw_uniform, generator, normal, uniform
from support.series.structural_series import (
    AHEAD,
    F64,
    TIMES,
    block,
    draw_theta,
    joint,
    model,
    problem,
)
from torch.testing import assert_close

from components.metrics.structural.coefficients import coefficient_table, parameter_rhats
from components.series.structural.structural_posterior import StructuralDraws

SUMS = {
    "states": ["local_linear_trend", block("seasonal", period=4), "dynamic_regression"],
    "goodwill": ["local_level", "nerlove_arrow", block("regression", expected_size=1.0)],
    "koyck": ["local_level", "koyck", block("regression", expected_size=1.0)],
}


def posterior(name, missing=(), **keys):
    data = problem(missing=missing)
    built = model(*SUMS[name], of=data, **keys)
    theta = draw_theta(built)
    draws = StructuralDraws(
        theta.unsqueeze(0),
        theta[:1],
        list(built.structure.names),
        of=built,
        series=data.series,
        contributions=torch.zeros(1, 2, TIMES, len(built.structure.labels), dtype=F64),
    )
    return data, built, theta, draws


def whole(data):
    """The series and its continuation, fully observed."""
    y = torch.cat([data.observations, data.future], 1)
    x, u = (
        torch.cat([a, b])
        for a, b in ((data.regressors, data.beyond.x), (data.inputs, data.beyond.u))
    )
    return data.series._replace(y=y, x=x, u=u, ahead=None)


def condition(built, theta, data, c, first=TIMES):
    """Mean and covariance of y from a given time given the observed y, from the dense Gaussian."""
    design = built.design(data.series, AHEAD)
    both, _, _ = joint(built.system(theta, design), c)
    observed = design.seen
    m = both.loc
    C = both.covariance_matrix
    lift = torch.linalg.solve(C[observed][:, observed], C[observed][:, first:]).T
    mean = m[first:] + lift @ (design.y[observed] - m[observed])
    return mean, C[first:, first:] - lift @ C[observed][:, first:]


@pytest.mark.parametrize("name", ["states", "goodwill"])
def test_forecasts_equal_the_conditional_gaussian(name):
    data, built, theta, draws = posterior(name, missing=(5, TIMES - 1))
    g = generator(0)

    forecast = draws.joint_forecast(data.series, AHEAD, g)
    mixture = draws.forecast(data.series, AHEAD, g)

    for c in range(2):
        mean, covariance = condition(built, theta, data, c)
        assert_close(forecast.mean[c], mean, rtol=1e-9, atol=1e-8)
        assert_close(forecast.covariance[c], covariance, rtol=1e-8, atol=1e-8)
        assert_close(mixture.v[c, :, 0], covariance.diagonal(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("missing", [(), (TIMES - 2, TIMES - 1)])
def test_koyck_forecasts_use_previous_forecasts(missing):
    """y_h = w_h + κ (y_{h−1} − c), with literal means and covariances."""
    data, built, theta, draws = posterior("koyck", missing=missing)
    kappa = theta[:, built.structure.names.index("y_lag")]
    centre = float(data.observations[0, 0, 0])
    late = len(missing)

    forecast = draws.joint_forecast(data.series, AHEAD, generator(0))

    for c in range(2):
        mean, Q = condition(built, theta, data, c, first=TIMES - late)
        for h in range(1, len(mean)):  # y_h includes κ y_{h−1}
            mean[h] += kappa[c] * (mean[h - 1] - centre)
            Q[h] += kappa[c] * Q[h - 1]
            Q[:, h] += kappa[c] * Q[:, h - 1]
        assert_close(forecast.mean[c], mean[late:], rtol=1e-9, atol=1e-8)
        assert_close(forecast.covariance[c], Q[late:, late:], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", SUMS)
def test_one_step_forecast_equals_a_forecast_of_one(name):
    data, _, _, draws = posterior(name, missing=(5,))
    grown = whole(data)
    g = generator(0)

    forecast = draws.one_ahead(grown, AHEAD, g)

    for h in (0, 3, AHEAD - 1):
        n = TIMES + h
        cut = grown._replace(y=grown.y[:, :n], x=grown.x[:n], u=grown.u[:n])
        cut = cut._replace(ahead=data.beyond._replace(x=grown.x[n:], u=grown.u[n:]))
        single = draws.forecast(cut, 1, g)
        assert_close(forecast.mu[:, h], single.mu[:, 0], rtol=1e-9, atol=1e-8)
        assert_close(forecast.v[:, h], single.v[:, 0], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("name", ["goodwill", "koyck"])
def test_inputs_act_in_the_affine_form(name):
    """The forecast for any plan u_T … u_{T+H−1} is the base plus D u."""
    data, _, _, draws = posterior(name)
    g = generator(0)
    plan = uniform(g, AHEAD, 2)

    forecast = draws.affine(data.series, AHEAD, g)

    series = data.series
    u = torch.cat([series.u[:-1], plan[:1]])
    planned = series._replace(
        u=u, ahead=series.ahead._replace(u=torch.cat([plan[1:], torch.zeros(1, 2, dtype=F64)]))
    )
    expected = draws.forecast(planned, AHEAD, g).mu[..., 0]
    assert torch.allclose(
        forecast.mean + torch.einsum("shji,ji->sh", forecast.effect, plan), expected, rtol=1e-9
    )
    assert (forecast.effect[:, 0, 1:] == 0).all()  # eq. (1.4): u_{T+1} acts from y_{T+2} on


def alike(draws, n):
    """n copies of the first draw."""
    lam = None if draws.precisions is None else draws.precisions[:, :1].expand(-1, n, -1)
    return replace(draws, draws=draws.draws[:, :1].expand(-1, n, -1), precisions=lam)


def test_coefficients_of_a_point_estimate_are_integrated_out():
    """The sum of the forecasts under a flat prior of β: literal generalised least squares."""
    data, built, theta, draws = posterior("goodwill", missing=(5,))
    p = len(built.structure.beta)
    point = replace(draws, draws=draws.draws[:, :1], coefficient_sd=torch.full((p,), 1e4).to(F64))
    sums = point.joint_forecast(data.series, AHEAD, torch.Generator()).sums(
        torch.ones(1, AHEAD, dtype=F64)
    )
    design = built.design(data.series, AHEAD)
    system = built.system(theta, design)
    both, _, _ = joint(system._replace(offset=0 * system.offset), 0)
    X = built.columns(theta, design)[0]
    observed = design.seen
    C = both.covariance_matrix
    residuals = design.y[observed] - both.loc[observed]
    K = torch.linalg.solve(C[observed][:, observed], C[observed][:, TIMES:]).T
    precision = X[observed].T @ torch.linalg.solve(C[observed][:, observed], X[observed])
    beta = torch.linalg.solve(
        precision, X[observed].T @ torch.linalg.solve(C[observed][:, observed], residuals)
    )
    R = X[TIMES:] - K @ X[observed]
    mean = both.loc[TIMES:] + K @ residuals + R @ beta
    covariance = C[TIMES:, TIMES:] - K @ C[observed][:, TIMES:]
    assert float(sums.mean) == pytest.approx(float(mean.sum()), rel=1e-6)
    assert float(sums.v) == pytest.approx(
        float((covariance + R @ torch.linalg.solve(precision, R.T)).sum()), rel=1e-6
    )


def test_heavy_tails_downweight_outliers():
    """Given the precisions, errors are Gaussian; a future error has a t distribution, independent
    of the past."""
    data, built, theta, draws = posterior("states", errors="student_t", nu=4.0)
    lam = 0.5 + draw_uniform(1, 2, TIMES)
    drawn = replace(draws, precisions=lam)
    design = built.design(data.series, 1)
    system = built.system(theta, design)
    # without a separate error at T + 1
    scales = torch.cat([lam[0], torch.full((2, 1), torch.inf, dtype=F64)], 1)
    both, _, _ = joint(system._replace(noise=system.noise / scales), 0)
    past = torch.distributions.MultivariateNormal(both.loc[:-1], both.covariance_matrix[:-1, :-1])

    log_likelihood = drawn.log_likelihood(data.series)
    v = alike(drawn, 500).forecast(data.series, 1, generator(3)).v[:, 0, 0]

    assert float(log_likelihood[0]) == pytest.approx(float(past.log_prob(design.y[:-1])), rel=1e-10)
    C = both.covariance_matrix
    state = C[-1, -1] - C[-1, :-1] @ torch.linalg.solve(C[:-1, :-1], C[:-1, -1])
    weights = theta[0, 0] ** 2 / (v - state)  # λ ~ Gamma(ν/2, ν/2): mean 1, variance 2/ν
    assert abs(float(weights.mean()) - 1) < 4 * math.sqrt(0.5 / 500)
    assert abs(float(weights.var()) / 0.5 - 1) < 0.5


def test_parts_and_residuals_add_up():
    draws = posterior("goodwill", missing=(5,))[3]

    assert [part.name for part in draws.components] == ["level", "goodwill", "regression"]
    level = draws.contributions.flatten(0, 1)[:, :, 0]
    assert_close(draws.components[0].lower, level.quantile(0.025, dim=0))
    assert_close(draws.components[0].upper, level.quantile(0.975, dim=0))
    assert draws.residuals.isnan().nonzero().flatten().tolist() == [5]
    assert draws.inclusion == {"tv": 1.0, "web": 1.0, "a": 1.0, "b": 1.0}


@pytest.mark.parametrize("name", ["goodwill", "koyck"])
def test_long_run_effects_are_sums_of_later_effects(name):
    """Σ_h of the effect of u_T = 1 on y_{T+h}, h = 1 … 400, by (1.4) and by Koyck's recursion."""
    _, built, theta, draws = posterior(name)
    index = built.structure.names.index
    if name == "koyck":
        theta[:, index("y_lag")] = double([0.4, 1.3])  # the second: an infinite sum
        draws = replace(draws, draws=theta.unsqueeze(0))
    long_run = draws.long_run
    assert list(long_run) == ["tv", "web"]
    for c in range(2):
        for channel in long_run:
            q = float(theta[c, index(channel if name == "goodwill" else f"{channel}_lag")])
            kept = float(theta[c, index("goodwill_kept" if name == "goodwill" else "y_lag")])
            added = q
            total = 0.0
            for _ in range(400):
                total = total + added
                added = kept * added
            expected = total if kept < 1 else math.copysign(math.inf, q)
            assert float(long_run[channel][c]) == pytest.approx(expected, rel=1e-9)


def test_table_of_coefficients_has_one_line_each():
    draws = posterior("goodwill")[3]
    g = generator(0)
    theta = draws.draws[:, :1] + 0.01 * normal(g, 3, 200, draws.draws.shape[2])
    theta[..., draws.names.index("web")] = 0.0
    many = replace(draws, draws=theta)

    table = coefficient_table(many, many).set_index("name")

    assert list(table.index) == draws.names
    assert table.loc["tv", "mean"] == pytest.approx(
        float(theta[..., draws.names.index("tv")].mean())
    )
    assert table.loc["web", "inclusion"] == 0.0
    assert table["inclusion"].isna().sum() == 4  # standard deviations and the retention of goodwill
    assert math.isnan(table.loc["web", "rhat"])
    assert abs(table.loc["a", "rhat"] - 1) < 0.02
    assert (
        table.loc["tv", "long_run_lower95"]
        < many.long_run["tv"].median()
        < table.loc["tv", "long_run_upper95"]
    )
    assert parameter_rhats(many)["tv"] == table.loc["tv", "rhat"]
