"""Distances between predictions: the formulas by hand, and units that cancel."""

import math

import numpy as np
import pytest

from components.metrics.predictive_distance import predictive_distances

MEAN, SD = np.array([1.0, 4.0]), np.array([2.0, 0.5])  # of gold


def test_root_mean_squares_in_deviations_of_gold():
    found = predictive_distances(np.array([2.0, 4.0]), np.array([2.0, 0.75]), MEAN, SD)
    assert found["distance_mean"] == pytest.approx(math.sqrt((0.5**2 + 0) / 2))
    assert found["distance_sd"] == pytest.approx(math.sqrt((0 + 0.5**2) / 2))
    assert found["distance"] == pytest.approx(0.5)


def test_gold_itself_is_at_distance_0_and_units_cancel():
    assert set(predictive_distances(MEAN, SD, MEAN, SD).values()) == {0.0}
    mean, sd = MEAN + np.array([0.3, -0.1]), SD * np.array([1.5, 0.9])
    scaled = predictive_distances(7 + 3 * mean, 3 * sd, 7 + 3 * MEAN, 3 * SD)
    assert scaled == pytest.approx(predictive_distances(mean, sd, MEAN, SD))


def test_it_is_the_transport_of_gaussians():
    """W₂² of N(m, s²) and N(m*, s*²), the mean square difference of their quantiles, at one
    input."""
    from scipy.stats import norm

    levels = (np.arange(200_000) + 0.5) / 200_000
    difference = norm.ppf(levels) * 1.7 + 0.4 - (norm.ppf(levels) * 1.2 - 0.1)
    found = predictive_distances(
        np.array([0.4]), np.array([1.7]), np.array([-0.1]), np.array([1.2])
    )
    assert found["distance"] == pytest.approx(math.sqrt((difference**2).mean()) / 1.2, rel=1e-3)
