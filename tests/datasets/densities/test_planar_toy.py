"""Banana, two modes and cross in the plane: literal densities, and moments by quadrature."""

import pytest
import torch
from support.runs.configured import F64, double, load
from torch import distributions as d

SHAPES = ["banana", "multimodal", "x_shaped"]


def normal(mean, covariance):
    return d.MultivariateNormal(double(mean), double(covariance))


def literally(shape, x, y):
    theta = double([x, y])
    if shape == "banana":
        return normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]]).log_prob(double([x, y - x**2 - 1]))
    parts = {
        "multimodal": (
            normal([-2.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]),
            normal([2.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]),
        ),
        "x_shaped": (
            normal([0.0, 0.0], [[2.0, 1.8], [1.8, 2.0]]),
            normal([0.0, 0.0], [[2.0, -1.8], [-1.8, 2.0]]),
        ),
    }[shape]
    return sum(0.5 * part.log_prob(theta).exp() for part in parts).log()


@pytest.mark.parametrize("shape", SHAPES)
def test_density_and_moments(shape):
    problem, _ = load("planar_toy", shape=shape)
    for x, y in [(0.3, 0.8), (-1.7, 2.0), (2.5, -1.0)]:
        log_p = problem.log_density(double([[x, y]]))
        assert float(log_p) == pytest.approx(float(literally(shape, x, y)), rel=1e-12)
    x = torch.linspace(-9, 9, 901, dtype=F64)
    y = torch.linspace(-12, 50, 3101, dtype=F64)
    grid = torch.cartesian_prod(x, y)
    weight = problem.log_density(grid).exp() * (0.02 * 0.02)
    assert weight.sum() == pytest.approx(1.0, abs=1e-4)
    for power, exact in ((1, problem.mean), (2, problem.second_moment)):
        assert torch.allclose(weight @ grid**power, exact, atol=2e-3)
