"""Distances between predictions: literal formulas, and invariance to units."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from components.metrics.predictive_distance import predictive_distances, total_variation

# the reference distribution
MEAN = np.array([1.0, 4.0])
SD = np.array([2.0, 0.5])


def test_root_mean_squares_are_in_gold_standard_deviations():
    distances = predictive_distances(np.array([2.0, 4.0]), np.array([2.0, 0.75]), MEAN, SD)
    assert distances["distance_mean"] == pytest.approx(math.sqrt((0.5**2 + 0) / 2))
    assert distances["distance_sd"] == pytest.approx(math.sqrt((0 + 0.5**2) / 2))
    assert distances["distance"] == pytest.approx(0.5)


@pytest.mark.parametrize("shift", [0.0, 1e-9, 0.3, -2.0, 9.0])
@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-9, 0.999, 1.3, 0.05, 40.0])
def test_total_variation_equals_the_integral(shift, ratio):
    edge = 12 * max(1.0, ratio) + abs(shift)
    # finer around the narrower distribution
    around = [np.linspace(c - 12 * s, c + 12 * s, 400_001) for c, s in ((0, 1), (shift, ratio))]
    y = np.unique(np.concatenate([*around, [-edge, edge]]))
    gap = np.abs(norm.pdf(y, shift, ratio) - norm.pdf(y))
    distance = total_variation(np.array([shift]), np.array([ratio]))[0]
    assert distance == pytest.approx(0.5 * np.trapezoid(gap, y), abs=2e-6)


def test_total_variation_is_a_symmetric_mean_over_inputs():
    mean = MEAN + np.array([0.3, -0.1])
    sd = SD * np.array([1.5, 0.9])
    distance = predictive_distances(mean, sd, MEAN, SD)["distance_tv"]
    each = [predictive_distances(mean[[i]], sd[[i]], MEAN[[i]], SD[[i]]) for i in (0, 1)]
    assert distance == pytest.approx(sum(scores["distance_tv"] for scores in each) / 2)
    assert distance == pytest.approx(predictive_distances(MEAN, SD, mean, sd)["distance_tv"])


def test_gold_has_distance_0_from_itself_in_any_units():
    assert set(predictive_distances(MEAN, SD, MEAN, SD).values()) == {0.0}
    mean = MEAN + np.array([0.3, -0.1])
    sd = SD * np.array([1.5, 0.9])
    scaled = predictive_distances(7 + 3 * mean, 3 * sd, 7 + 3 * MEAN, 3 * SD)
    assert scaled == pytest.approx(predictive_distances(mean, sd, MEAN, SD))


def test_wasserstein_distance_equals_the_gaussian_formula():
    """W₂² of N(m, s²) and N(m*, s*²): the mean squared difference of their quantiles at one
    input."""
    levels = (np.arange(200_000) + 0.5) / 200_000
    difference = norm.ppf(levels) * 1.7 + 0.4 - (norm.ppf(levels) * 1.2 - 0.1)
    distances = predictive_distances(
        np.array([0.4]), np.array([1.7]), np.array([-0.1]), np.array([1.2])
    )
    assert distances["distance"] == pytest.approx(math.sqrt((difference**2).mean()) / 1.2, rel=1e-3)
