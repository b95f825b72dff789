"""Kernels compared with a literal eq. (3.15), their gradients, and r = 0."""

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern
from support.runs.configured import F64, double, generator, normal, uniform

from components.maths.kernels import ORDERS, PRODUCT_SHAPES, kernel, prior_variance

SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5, "squared_exponential": np.inf}
SHAPES = list(SMOOTHNESS)
PRODUCTS = sorted(PRODUCT_SHAPES)


def draw_inputs(ard, G=2, N=4, M=3, D=3):
    g = generator(0)
    x = normal(g, G, N, D)
    z = normal(g, G, M, D)
    lengthscale = 0.5 + uniform(g, G, D if ard else 1)
    return x, z, lengthscale, double([0.7, 2.5])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_equals_equation_3_15(shape, ard):
    x, z, lengthscale, variance = draw_inputs(ard)
    covariance = kernel(x, z, lengthscale, variance, shape)
    for g in range(2):
        library = Matern(np.broadcast_to(lengthscale[g], 3), nu=SMOOTHNESS[shape])
        literal = float(variance[g]) * library(x[g], z[g])
        np.testing.assert_allclose(covariance[g], literal, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES + PRODUCTS)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_gradients_equal_finite_differences(shape, ard):
    inputs = [t.requires_grad_() for t in draw_inputs(ard)]
    assert torch.autograd.gradcheck(lambda *a: kernel(*a, shape), inputs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_coincident_points_have_finite_zero_gradients(shape, dtype):
    x = torch.randn(5, 2, generator=generator(0), dtype=dtype)
    z = x.clone().requires_grad_()
    ones = torch.ones(1, dtype=dtype)
    k = kernel(x, z, ones, torch.ones((), dtype=dtype), shape).diagonal()
    (gradient,) = torch.autograd.grad(k.sum(), z)
    # r² comes from a difference of squares, so it is zero to rounding only; Matérn-1/2 uses its
    # square root.
    assert torch.allclose(k, torch.ones_like(k), atol=2e-3 if dtype == torch.float32 else 1e-7)
    assert torch.isfinite(gradient).all()
    if shape != "matern12":
        assert gradient.abs().max() < (1e-5 if dtype == torch.float32 else 1e-14)


def literal_arc_cosine(xi, other, n):
    """Eq. (2.20) for one pair of points; J_n by its definition, (1/sin θ ∂/∂θ) applied n times by
    central differences to (π − θ)/sin θ."""

    def apply_operator(theta, times):
        if times == 0:
            return (math.pi - theta) / math.sin(theta)
        h = 1e-4
        slope = (apply_operator(theta + h, times - 1) - apply_operator(theta - h, times - 1)) / (
            2 * h
        )
        return slope / math.sin(theta)

    norms = math.sqrt(float(xi @ xi)), math.sqrt(float(other @ other))
    theta = math.acos(float(xi @ other) / (norms[0] * norms[1]))
    J = (-1) ** n * math.sin(theta) ** (2 * n + 1) * apply_operator(theta, n)
    return norms[0] ** n * norms[1] ** n * J / math.pi


@pytest.mark.parametrize("ard", [True, False])
@pytest.mark.parametrize("shape", PRODUCTS)
def test_products_equal_equation_2_20(shape, ard):
    x, z, lengthscale, variance = draw_inputs(ard)
    k = kernel(x, z, lengthscale, variance, shape)
    for g, n, m in itertools.product(range(2), range(4), range(3)):
        # with a bias, the constant 1 is a further feature
        bias = [1.0] if shape.endswith("_bias") else []
        xi, other = (torch.cat([v / lengthscale[g], double(bias)]) for v in (x[g, n], z[g, m]))
        order = ORDERS.get(shape)
        literal = xi @ other if order is None else literal_arc_cosine(xi, other, order)
        assert k[g, n, m] == pytest.approx(float(variance[g] * literal), rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES + PRODUCTS)
def test_prior_variance_equals_the_diagonal(shape):
    x, _, lengthscale, _ = draw_inputs(ard=True)
    if shape != "arc_cosine0":  # the angle of 0 with 0 is not defined
        x[0, 0] = 0
    unit = torch.ones(2, dtype=F64)
    x.requires_grad_()
    diagonal = kernel(x, x, lengthscale, unit, shape).diagonal(dim1=-2, dim2=-1)
    ours = prior_variance(x, lengthscale**-2, shape)
    assert torch.allclose(ours, diagonal, atol=1e-6)
    (gradient,) = torch.autograd.grad(diagonal.sum(), x)
    assert torch.isfinite(gradient).all()
