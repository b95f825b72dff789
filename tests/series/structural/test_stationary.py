"""Stationary autoregressions: the map of partial autocorrelations, its inverse, and the roots."""

import numpy as np
import torch
from support.runs.configured import double, draw_normal, draw_uniform

from components.series.structural.stationary import coefficients_to_partial, partial_to_coefficients


def test_transform_is_invertible():
    r = double([[0.5, -0.3, 0.9], [-0.99, 0.2, 0.0]])

    assert torch.allclose(coefficients_to_partial(partial_to_coefficients(r)), r)


def test_partial_autocorrelations_below_one_give_stationarity():
    """All roots of z^p − φ_1 z^(p−1) − … − φ_p lie inside the unit circle if and only if all r lie
    in (−1, 1)."""
    phi = draw_uniform(400, 3) * 4 - 2

    is_stationary = (coefficients_to_partial(phi).abs() < 1).all(1)

    roots = [np.abs(np.roots([1.0, *(-row).tolist()])).max() < 1 for row in phi]
    assert is_stationary.tolist() == roots
    assert 10 < sum(roots) < 390
    r = torch.tanh(draw_normal(50, 3, seed=1))
    assert all(
        np.abs(np.roots([1.0, *(-row).tolist()])).max() < 1 for row in partial_to_coefficients(r)
    )
