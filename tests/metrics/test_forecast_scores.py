"""Scores of forecasts, compared with integrals, definitions and hand calculations."""

import math

import pytest
import torch
from support.runs.configured import F64, double

from components.contracts.predictive import Categorical, GaussianMixture
from components.metrics.crps import crps
from components.series.scores.forecasts import (
    entropy,
    interval_score,
    of_numbers,
    score_class_forecasts,
)


@pytest.mark.parametrize("sds", [[1.0], [0.3, 2.0], [0.01, 100.0], [1.0, 1.1, 0.2]])
def test_entropy_equals_the_integral(sds):
    """Trapezium rule on a grid that is fine where the density is large."""
    v = double(sds).square().view(-1, 1, 1)
    mu = 0.7 * torch.arange(len(sds), dtype=F64).view(-1, 1, 1)
    prediction = GaussianMixture(mu, v)
    near = torch.linspace(-10, 10, 200_001, dtype=F64)
    y = torch.cat([near.sinh() * max(sds) / 2000 + m for m in mu.flatten()]).sort().values
    log_p = prediction.log_prob(y.unsqueeze(1))[:, 0]
    expected = torch.trapezoid(-log_p.exp() * log_p, y)
    assert float(entropy(prediction)) == pytest.approx(float(expected), abs=3e-3)


def test_entropy_of_equal_components_is_that_of_one():
    alone = GaussianMixture(torch.zeros(1, 2, 1, dtype=F64), torch.full((1, 2, 1), 0.3, dtype=F64))
    many = GaussianMixture(
        torch.zeros(600, 2, 1, dtype=F64), torch.full((600, 2, 1), 0.3, dtype=F64)
    )
    assert torch.allclose(entropy(alone), entropy(many))
    assert float(entropy(alone)[0]) == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 0.3))


@pytest.mark.parametrize(("y", "expected"), [(0.5, 2.0), (1.5, 2 + 40 * 0.5), (-3.0, 2 + 40 * 2.0)])
def test_interval_score_equals_its_formula(y, expected):
    """Gneiting and Raftery (2007), eq. (43), for (−1, 1) at α = 0.05."""
    low = torch.tensor([-1.0])
    high = torch.tensor([1.0])
    assert float(interval_score(low, high, torch.tensor([y]), 0.05)) == pytest.approx(expected)


def test_scores_of_numbers_match_hand_calculation():
    """Three times with predictions N(0, 1): observed 1, observed 3, and unobserved."""
    prediction = GaussianMixture(torch.zeros(1, 3, 1, dtype=F64), torch.ones(1, 3, 1, dtype=F64))
    y = double([[1.0], [3.0], [math.nan]])
    scores = of_numbers(prediction, y)
    z = 1.959963984540054
    assert scores["mae"] == pytest.approx(2.0)
    assert scores["predictive_entropy"] == pytest.approx(0.5 * math.log(2 * math.pi * math.e))
    assert scores["interval_score"] == pytest.approx(2 * z + 20 * (3 - z), rel=1e-6)
    assert scores["interval_score_2sd"] == pytest.approx(4 + 20 * 1.0)
    assert scores["coverage95"] == 0.5
    assert scores["log_score"] == pytest.approx(-0.5 * math.log(2 * math.pi) - 0.25 * (1 + 9))
    assert scores["crps"] == pytest.approx(float(crps(prediction, torch.nan_to_num(y))[:2].mean()))


def test_scores_of_classes_match_hand_calculation():
    p = double([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    prediction = Categorical(p.log().view(1, 3, 1, 3))
    scores = score_class_forecasts(prediction, double([[0.0], [1.0], [math.nan]]))
    assert scores["accuracy"] == 0.5
    assert scores["log_score"] == pytest.approx(0.5 * (math.log(0.7) + math.log(0.25)))
    entropies = [-sum(q * math.log(q) for q in row) for row in p[:2].tolist()]
    assert scores["predictive_entropy"] == pytest.approx(sum(entropies) / 2)
