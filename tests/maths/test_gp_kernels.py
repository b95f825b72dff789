"""Kernels against eq. (3.15) evaluated literally, their gradients, and r = 0."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.runs.configured import F64, draw_normal, generator
from torch.testing import assert_close

from components.maths.kernels import correlation, kernel, prior_variance

SHAPES = ["matern12", "matern32", "matern52", "squared_exponential"]
PRODUCTS = ["linear", "arc_cosine0", "arc_cosine1", "arc_cosine2"]


def literal_kappa(r2: torch.Tensor, shape: str) -> torch.Tensor:
    """κ of Rasmussen and Williams (2006), eqs. (4.9), (4.17) and the exponential."""
    r = r2.sqrt()
    if shape == "squared_exponential":
        return (-r2 / 2).exp()
    root = math.sqrt({"matern12": 1, "matern32": 3, "matern52": 5}[shape])
    factor = {"matern12": 1, "matern32": 1 + root * r, "matern52": 1 + root * r + 5 * r2 / 3}[shape]
    return factor * (-root * r).exp()


def drawn(ard: bool, G=2, N=4, M=3, D=3):
    g = generator(0)
    x = torch.randn(G, N, D, generator=g, dtype=F64)
    z = torch.randn(G, M, D, generator=g, dtype=F64)
    lengthscale = 0.5 + torch.rand(G, D if ard else 1, generator=g, dtype=F64)
    return x, z, lengthscale, torch.tensor([0.7, 2.5], dtype=F64)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_is_equation_3_15(shape, ard):
    x, z, lengthscale, variance = drawn(ard)
    scaled = (x[:, :, None] - z[:, None]) / lengthscale[:, None, None]  # [G, N, M, D]
    literal = variance[:, None, None] * literal_kappa(scaled.square().sum(-1), shape)  # eq. (3.15)
    assert_close(kernel(x, z, lengthscale, variance, shape), literal, rtol=1e-12, atol=0)


@pytest.mark.parametrize("shape", SHAPES + PRODUCTS)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_gradients(shape, ard):
    inputs = [t.requires_grad_() for t in drawn(ard)]
    assert torch.autograd.gradcheck(lambda *a: kernel(*a, shape), inputs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_coinciding_points_have_finite_zero_gradients(shape, dtype):
    x = torch.randn(5, 2, generator=generator(0), dtype=dtype)
    z = x.clone().requires_grad_()
    one = torch.ones(1, dtype=dtype)
    k = kernel(x, z, one, torch.ones((), dtype=dtype), shape).diagonal()
    (gradient,) = torch.autograd.grad(k.sum(), z)
    # r² comes from a difference of squares, so it is zero to rounding only; √ of that is what
    # Matérn-1/2 sees.
    assert torch.allclose(k, torch.ones_like(k), atol=2e-3 if dtype == torch.float32 else 1e-7)
    assert torch.isfinite(gradient).all()
    if shape != "matern12":
        assert gradient.abs().max() < (1e-5 if dtype == torch.float32 else 1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_slopes_are_derivatives(shape):
    r2 = torch.linspace(0.01, 9, 50, dtype=F64)
    h = 1e-6
    _, slope = correlation(r2.clone(), shape)
    up, down = correlation(r2 + h, shape)[0], correlation(r2 - h, shape)[0]
    assert torch.allclose(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-10)
    assert correlation(r2.clone(), shape, slope=False)[1] is None


def test_smoothness_orders_the_family():
    """Near 0 a rougher kernel has fallen further: κ_1/2 < κ_3/2 < κ_5/2 < κ_∞."""
    values = [float(correlation(torch.tensor([0.04], dtype=F64), s)[0]) for s in SHAPES]
    assert values == sorted(values)


def literal_arc_cosine(xi, other, n: int) -> float:
    """Eq. (2.20), one pair of points; J_n by its definition, (1/sin θ ∂/∂θ) applied n times by
    central differences to (π − θ)/sin θ."""

    def applied(theta: float, times: int) -> float:
        if times == 0:
            return (math.pi - theta) / math.sin(theta)
        h = 1e-4
        slope = (applied(theta + h, times - 1) - applied(theta - h, times - 1)) / (2 * h)
        return slope / math.sin(theta)

    norms = math.sqrt(float(xi @ xi)), math.sqrt(float(other @ other))
    theta = math.acos(float(xi @ other) / (norms[0] * norms[1]))
    J = (-1) ** n * math.sin(theta) ** (2 * n + 1) * applied(theta, n)
    return norms[0] ** n * norms[1] ** n * J / math.pi


@pytest.mark.parametrize("ard", [True, False])
@pytest.mark.parametrize("shape", PRODUCTS)
def test_products_are_equation_2_20(shape, ard):
    x, z, lengthscale, variance = drawn(ard)
    k = kernel(x, z, lengthscale, variance, shape)
    for g, n, m in itertools.product(range(2), range(4), range(3)):
        xi, other = x[g, n] / lengthscale[g], z[g, m] / lengthscale[g]
        literal = xi @ other if shape == "linear" else literal_arc_cosine(xi, other, int(shape[-1]))
        assert k[g, n, m] == pytest.approx(float(variance[g] * literal), rel=1e-5)


def test_arc_cosine_is_the_covariance_of_a_wide_network():
    """E[Θ(w·ξ) (w·ξ)ⁿ Θ(w·ξ') (w·ξ')ⁿ] of w ~ N(0, I) is k_n/2 (Cho and Saul 2009, eq. 1); three
    Monte-Carlo standard errors."""
    x, z, _, _ = drawn(ard=True)
    one = torch.ones(1, dtype=F64)
    w = draw_normal(200_000, 3, seed=2)
    for n in (0, 1, 2):
        left, right = ((w @ p[0, 0]) for p in (x, z))
        units = [torch.where(u > 0, u**n, 0.0) for u in (left, right)]
        product = 2 * units[0] * units[1]
        k = float(kernel(x[0, :1], z[0, :1], one, one[0], f"arc_cosine{n}"))
        assert abs(float(product.mean()) - k) < 3 * float(product.std()) / len(w) ** 0.5


@pytest.mark.parametrize("shape", SHAPES + PRODUCTS)
def test_prior_variance_is_the_diagonal(shape):
    x, _, lengthscale, _ = drawn(ard=True)
    if shape != "arc_cosine0":  # the angle of 0 with 0 is not defined
        x[0, 0] = 0
    unit = torch.ones(2, dtype=F64)
    x.requires_grad_()
    diagonal = kernel(x, x, lengthscale, unit, shape).diagonal(dim1=-2, dim2=-1)
    ours = prior_variance(x, lengthscale**-2, shape)
    assert torch.allclose(ours, diagonal, atol=1e-6)
    (gradient,) = torch.autograd.grad(diagonal.sum(), x)
    assert torch.isfinite(gradient).all()
