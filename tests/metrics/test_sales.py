"""Scores of sales, written out."""

from __future__ import annotations

import math

import pytest
import torch

from components.contracts.predictive import GaussianMixture
from components.series.scores.sales import mape, score_intervention, score_sales_forecast

F64 = torch.float64


def test_mape_as_printed():
    y, predicted = [100.0, 200.0, 50.0], [110.0, 190.0, 50.0]
    expected = 100 / 3 * sum(abs(a - b) / a for a, b in zip(y, predicted, strict=True))

    assert mape(
        torch.tensor([*predicted, 7.0], dtype=F64), torch.tensor([*y, math.nan], dtype=F64)
    ) == pytest.approx(expected)


def test_times_at_which_nothing_is_sold_have_no_relative_error():
    y = torch.tensor([0.0, 200.0, 50.0, 0.0], dtype=F64)
    law = GaussianMixture(torch.full((1, 4, 1), 100.0, dtype=F64), torch.ones(1, 4, 1, dtype=F64))
    found = score_sales_forecast(law, y, ())
    assert found["mape"] == pytest.approx(100 / 2 * (100 / 200 + 50 / 50))
    assert found["mape_zeros"] == 2.0
    assert "mape" not in score_sales_forecast(law, torch.zeros(4, dtype=F64), ())
    assert "effect/relative" not in score_intervention(torch.zeros(5, 4, dtype=F64), y)


def test_sums_by_year_leave_out_what_was_not_seen():
    y = torch.tensor([10.0, 20.0, math.nan, 40.0], dtype=F64)
    mean = torch.tensor([11.0, 19.0, 30.0, 44.0], dtype=F64)
    law = GaussianMixture(mean.view(1, 4, 1), torch.full((1, 4, 1), 4.0, dtype=F64))

    found = score_sales_forecast(law, y, ("2013-12-20", "2013-12-27", "2014-01-03", "2014-01-10"))

    assert found["cumulative/2013"] == 30.0
    assert found["cumulative/2014"] == 44.0
    assert found["cumulative_observed/2014"] == 40.0
    assert found["cumulative"] == 74.0
    assert found["coverage90"] == pytest.approx(2 / 3)  # 44 is 2 sd off, beyond 1.645
    assert score_sales_forecast(law, torch.full_like(y, math.nan), ()) == {}


def test_an_effect_is_what_paths_lack():
    paths = torch.randn(4_000, 3, generator=torch.Generator().manual_seed(0), dtype=F64) + 10
    y = torch.tensor([13.0, math.nan, 12.0], dtype=F64)

    found = score_intervention(paths, y)

    assert found["effect/cumulative"] == pytest.approx(5.0, abs=4 * math.sqrt(2 / 4_000))
    assert found["effect/average"] == pytest.approx(found["effect/cumulative"] / 2)
    assert found["effect/cumulative_upper95"] - found["effect/cumulative_lower95"] == pytest.approx(
        2 * 1.96 * math.sqrt(2), rel=0.08
    )
    assert found["effect/relative"] == pytest.approx(0.25, abs=0.01)
    assert found["effect/tail_probability"] < 0.01
    assert (
        score_intervention(paths, torch.full((3,), 10.0, dtype=F64))["effect/tail_probability"]
        > 0.3
    )
