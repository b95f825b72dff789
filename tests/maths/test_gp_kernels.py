"""Kernels against eq. (3.15) evaluated literally, their gradients, and r = 0."""

from __future__ import annotations

import math

import pytest
import torch

from components.maths.kernels import correlation, kernel

SHAPES = ["matern12", "matern32", "matern52", "squared_exponential"]


def literal_kappa(r2: float, shape: str) -> float:
    """κ of Rasmussen and Williams (2006), eqs. (4.9), (4.17) and the exponential, one number at a
    time."""
    r = math.sqrt(r2)
    return {
        "matern12": math.exp(-r),
        "matern32": (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
        "matern52": (1 + math.sqrt(5) * r + 5 * r2 / 3) * math.exp(-math.sqrt(5) * r),
        "squared_exponential": math.exp(-r2 / 2),
    }[shape]


def drawn(ard: bool, G=2, N=4, M=3, D=3):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(G, N, D, generator=g, dtype=torch.float64)
    z = torch.randn(G, M, D, generator=g, dtype=torch.float64)
    lengthscale = 0.5 + torch.rand(G, D if ard else 1, generator=g, dtype=torch.float64)
    return x, z, lengthscale, torch.tensor([0.7, 2.5], dtype=torch.float64)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_is_equation_3_15(shape, ard):
    x, z, lengthscale, variance = drawn(ard)
    k = kernel(x, z, lengthscale, variance, shape)
    for g in range(2):
        for n in range(4):
            for m in range(3):
                weights = [1 / float(lengthscale[g, d if ard else 0]) ** 2 for d in range(3)]
                r2 = sum(
                    weights[d] * (float(x[g, n, d]) - float(z[g, m, d])) ** 2 for d in range(3)
                )
                literal = float(variance[g]) * literal_kappa(r2, shape)  # eq. (3.15)
                assert float(k[g, n, m]) == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ard", [True, False])
def test_kernel_gradients(shape, ard):
    inputs = [t.requires_grad_() for t in drawn(ard)]
    assert torch.autograd.gradcheck(lambda *a: kernel(*a, shape), inputs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_coinciding_points_have_finite_zero_gradients(shape, dtype):
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=dtype)
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
    r2 = torch.linspace(0.01, 9, 50, dtype=torch.float64)
    h = 1e-6
    _, slope = correlation(r2.clone(), shape)
    up, down = correlation(r2 + h, shape)[0], correlation(r2 - h, shape)[0]
    assert torch.allclose(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-10)
    assert correlation(r2.clone(), shape, slope=False)[1] is None


def test_smoothness_orders_the_family():
    """Near 0 a rougher kernel has fallen further: κ_1/2 < κ_3/2 < κ_5/2 < κ_∞."""
    values = [float(correlation(torch.tensor([0.04], dtype=torch.float64), s)[0]) for s in SHAPES]
    assert values == sorted(values)
