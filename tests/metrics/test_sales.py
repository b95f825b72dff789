"""Scores of sales, compared with literal versions."""

import math

import pytest
import torch
from support.runs.configured import F64, double

from components.contracts.posteriors import ForecastMoments
from components.contracts.predictive import GaussianMixture
from components.series.scores.sales import mape, score_intervention, score_sales_forecast


def test_mape_equals_the_printed_formula():
    y = [100.0, 200.0, 50.0]
    predicted = [110.0, 190.0, 50.0]
    expected = 100 / 3 * sum(abs(a - b) / a for a, b in zip(y, predicted, strict=True))

    assert mape(double([*predicted, 7.0]), double([*y, math.nan])) == pytest.approx(expected)


def test_times_without_sales_have_no_relative_error():
    y = double([0.0, 200.0, 50.0, 0.0])
    law = GaussianMixture(torch.full((1, 4, 1), 100.0, dtype=F64), torch.ones(1, 4, 1, dtype=F64))
    scores = score_sales_forecast(law, y, ())
    assert scores["mape"] == pytest.approx(100 / 2 * (100 / 200 + 50 / 50))
    assert scores["mape_zeros"] == 2.0
    assert "mape" not in score_sales_forecast(law, torch.zeros(4, dtype=F64), ())


def test_yearly_sums_leave_out_missing_values():
    y = double([10.0, 20.0, math.nan, 40.0])
    mean = double([11.0, 19.0, 30.0, 44.0])
    law = GaussianMixture(mean.view(1, 4, 1), torch.full((1, 4, 1), 4.0, dtype=F64))

    scores = score_sales_forecast(law, y, ("2013-12-20", "2013-12-27", "2014-01-03", "2014-01-10"))

    assert scores["cumulative/2013"] == 30.0
    assert scores["cumulative/2014"] == 44.0
    assert scores["cumulative_observed/2014"] == 40.0
    assert scores["cumulative"] == 74.0
    assert scores["coverage90"] == pytest.approx(2 / 3)  # 44 is 2 sd off, beyond 1.645
    assert score_sales_forecast(law, torch.full_like(y, math.nan), ()) == {}


def test_effect_is_the_observed_minus_the_expected_sum():
    """One draw has the interval of its Gaussian sum; two draws have the interval of their
    mixture."""
    y = double([13.0, math.nan, 12.0])
    covariance = torch.full((1, 3, 3), 0.5, dtype=F64) + 0.5 * torch.eye(3, dtype=F64)
    moments = ForecastMoments(torch.full((1, 3), 10.0, dtype=F64), covariance)
    scores = score_intervention(moments, y)
    half = 1.959964 * math.sqrt(3)  # Var of the sum of two values with covariance ½
    assert scores["effect/cumulative"] == pytest.approx(5.0)
    assert scores["effect/average_upper95"] == pytest.approx((5 + half) / 2)
    assert scores["effect/cumulative_lower95"] == pytest.approx(5 - half)
    assert scores["effect/relative"] == pytest.approx(0.25)
    assert scores["effect/relative_lower95"] == pytest.approx(25 / (20 + half) - 1)
    assert scores["effect/tail_probability"] == pytest.approx(
        0.5 * math.erfc(5 / math.sqrt(3) / math.sqrt(2))
    )
    apart = ForecastMoments(torch.tensor([[5.0] * 3, [15.0] * 3]).to(F64), 1e-4 * covariance)
    wide = score_intervention(apart._replace(covariance=apart.covariance.expand(2, -1, -1)), y)
    assert wide["effect/cumulative_lower95"] == pytest.approx(-5.0, abs=0.1)
    assert wide["effect/tail_probability"] == pytest.approx(0.5)
    assert "effect/relative" not in score_intervention(moments._replace(mean=0 * moments.mean), y)
    assert score_intervention(moments, y * math.nan) == {}
