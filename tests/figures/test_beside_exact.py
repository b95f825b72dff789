"""Draws next to exact densities: contours contain their nominal mass, and standard deviations agree
with the densities."""

import torch
from support.runs.configured import F64, component, double, draw_normal, load
from support.small.small_problems import train
from support.targets.mean_field_families import build_model, rows
from torch.testing import assert_close

from components.figures.variational.beside_exact import (
    beside_exact,
    levels,
    plane,
    spread,
    target_contours,
)
from components.figures.variational.bound_by_start import bound_by_start


def test_gaussian_levels_enclose_expected_mass():
    """A bivariate normal has the share 1 − e^−d of its mass where log p exceeds its maximum minus
    d."""
    theta = draw_normal(500, 2) * 0.3

    def exact(points):
        return -0.5 * points.square().sum(1)

    _, points = plane(theta, exact)
    assert points.max() > 4  # wider than the draws
    value = exact(points)
    shares = 1 - torch.exp(double(levels(value)))
    assert_close(shares, double([0.95, 0.75, 0.5, 0.25]), atol=0.01, rtol=0)
    assert_close(spread(value, points), torch.ones(2, dtype=F64), atol=2e-3, rtol=0)


def test_exact_comparison_draws_rows_and_density():
    problem = rows(n=10)
    inference = component("inference", "cavi", draws=200)
    state, rng = train(inference, build_model("normal_gamma", problem), problem, 5)
    posterior = inference.posterior(state)
    (axis,) = beside_exact(problem, posterior, rng)["beside_exact"].axes
    assert [text.get_text() for text in axis.get_legend().texts] == ["exact posterior", "q"]
    gaussian, _ = load("gaussian")
    assert (
        target_contours(
            gaussian, object.__new__(type("NoDensity", (), {"draws": torch.zeros(1, 1, 2)}))
        )
        == {}
    )
    assert bound_by_start(torch.zeros(1, 3), "ELBO") == {}
