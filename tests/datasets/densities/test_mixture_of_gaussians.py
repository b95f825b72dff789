"""The mixture of Gaussians in the plane against literal formulas."""

import math

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, load
from support.targets.known_targets import z_score
from torch.testing import assert_close


def test_mixture_density_is_a_literal_sum():
    problem, _ = load("mixture_of_gaussians_2d")
    theta = 2 * draw_normal(5, 2)
    for row, got in zip(theta, problem.log_density(theta), strict=True):
        total = 0.0
        for a in (-2.0, 0.0, 2.0):
            for b in (-2.0, 0.0, 2.0):
                square = (float(row[0]) - a) ** 2 + (float(row[1]) - b) ** 2
                total += math.exp(-square / 0.2) / (2 * math.pi * 0.1) / 9
        assert math.isclose(float(got), math.log(total), rel_tol=1e-10)


def test_mixture_moments_match_quadrature():
    problem, _ = load("mixture_of_gaussians_2d", per_side=2, spacing=3.0, variance=0.2)
    grid = torch.linspace(-6, 6, 601, dtype=F64)
    points = torch.cartesian_prod(grid, grid)
    w = problem.log_density(points).exp() * (grid[1] - grid[0]) ** 2
    assert w.sum() == pytest.approx(1, abs=1e-9)
    assert_close((w.unsqueeze(1) * points).sum(0), problem.mean, atol=1e-8, rtol=0)
    assert_close((w.unsqueeze(1) * points**2).sum(0), problem.second_moment)
    assert_close(problem.second_moment[0], double(0.2 + 9 * 3 / 12))


def test_start_has_the_requested_mean_and_spread():
    problem, rng = load("mixture_of_gaussians_2d", start_mean=[3.0, -1.0], start_sd=0.5)
    start = problem.sample_prior(20_000, rng.init)
    expected = double([3.0, -1.0])
    assert z_score(start, expected).abs().max() < 4
    assert z_score((start - expected).square(), 0.25).abs().max() < 4
