"""The seasonal naive forecast, and errors relative to it, by loops over the months."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import component, load

from components.errors import ConfigMismatchError
from components.series.maths.seasons import seasonal_errors
from runner.execution.rng import Streams

NAN = math.nan
AIRLINE = {"simulated": True, "n_train": 36, "n_ahead": 30}


def posterior(problem, rng, **keys):
    inference = component("inference", "seasonal_naive", **keys)
    state = inference.init(None, problem, rng)
    state, _ = inference.step(state, problem.series, rng)
    return inference.posterior(state)


def test_forecast_repeats_the_last_year_with_growing_variance():
    problem, rng = load("airline", **AIRLINE)
    y = problem.observations[0, :, 0].tolist()
    forecast = problem.forecast(posterior(problem, rng), rng)
    errors = [y[t] - y[t - 12] for t in range(12, 36)]
    s2 = sum(e * e for e in errors) / len(errors)
    for h in range(1, 31):
        years = math.ceil(h / 12)
        assert float(forecast.mean[h - 1, 0]) == pytest.approx(y[36 + h - 12 * years - 1])
        assert float(forecast.variance[h - 1, 0]) == pytest.approx(years * s2)


def test_likelihood_equals_that_of_the_differences():
    problem, rng = load("airline", **AIRLINE)
    y = problem.observations[0, :, 0].tolist()
    samples = posterior(problem, rng, period=1)
    s2 = float(samples.variance)
    by_hand = sum(
        -0.5 * (math.log(2 * math.pi * s2) + (y[t] - y[t - 1]) ** 2 / s2) for t in range(1, 36)
    )
    assert float(samples.log_likelihood(problem.series)) == pytest.approx(by_hand)


def test_forecast_errors_are_scaled_by_seasonal_ones():
    """Hyndman and Koehler (2006): mean |e| of the forecasts over mean |y_t − y_{t−12}| of observed
    values."""
    problem, rng = load("airline", **AIRLINE)
    samples = posterior(problem, rng, period=1)
    y = problem.observations[0, :, 0].tolist()
    future = problem.future[0, :, 0].tolist()
    mean_change = sum(abs(y[t] - y[t - 12]) for t in range(12, 36)) / 24
    ahead = sum(abs(v - y[-1]) for v in future) / 30
    assert problem.score(samples, rng)["mase"] == pytest.approx(ahead / mean_change)
    assert replace(problem, season=1).score(samples, rng)["mase"] != pytest.approx(
        ahead / mean_change
    )
    assert "mase" not in replace(problem, season=40).score(samples, rng)


def test_missing_value_is_replaced_by_the_season_before():
    y = torch.tensor([1.0, 2.0, NAN, 5.0, 4.0, NAN, NAN])
    # carried forward: 1, 2, 1, 5, 4, 5, 4 with a season of 2
    assert seasonal_errors(y, 2).tolist() == [3.0, 3.0]
    assert seasonal_errors(y, 7).tolist() == []


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        ({"period": 36}, {}, "inference.period=36: the series has no two values a season apart"),
        (
            {"period": 1},
            {"constant": True},
            "inference.period=1: the series repeats itself exactly",
        ),
    ],
)
def test_series_without_seasonal_errors_are_refused(keys, changes, message):
    problem, rng = load("airline", **AIRLINE)
    if changes:
        problem = replace(problem, observations=torch.ones_like(problem.observations))
    with pytest.raises(ConfigMismatchError, match=message):
        posterior(problem, rng, **keys)


def test_one_month_forecast_uses_all_months_before():
    problem, rng = load("airline", origin="before", **AIRLINE)
    forecast = problem.forecast(posterior(problem, Streams(0), period=1), rng)
    y = [*problem.observations[0, -1:, 0].tolist(), *problem.future[0, :-1, 0].tolist()]
    assert forecast.mean[:, 0].tolist() == pytest.approx(y)
