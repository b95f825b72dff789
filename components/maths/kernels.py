"""Kernels: stationary correlation functions of r² = Σ_d w_d (x_d − x'_d)², w = 1/ℓ², and functions
of products Σ_d w_d x_d x'_d; explicit values and slopes.

A stationary kernel is σ² κ(r²) (Boustati (2021), eq. (3.15)); callers apply σ², so that matrices
here have a unit diagonal and the jitter is relative to the signal variance.  Slopes dκ/dr² need no
special case at r = 0, except for Matérn-1/2.  Product kernels (linear, ArcCosine) have a prior
variance σ² κ(x, x) that depends on x and, for orders above 0, is 0 at x = 0; with the suffix _bias
the scaled inputs have a further feature, the constant 1, and functions a random constant."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Shape = Literal[
    "matern12",
    "matern32",
    "matern52",
    "squared_exponential",
    "linear",
    "arc_cosine0",
    "arc_cosine1",
    "arc_cosine2",
    "linear_bias",
    "arc_cosine0_bias",
    "arc_cosine1_bias",
    "arc_cosine2_bias",
]
ORDERS: dict[Shape, int] = {  # n of eq. (2.20)
    "arc_cosine0": 0,
    "arc_cosine1": 1,
    "arc_cosine2": 2,
    "arc_cosine0_bias": 0,
    "arc_cosine1_bias": 1,
    "arc_cosine2_bias": 2,
}
PRODUCT_SHAPES = frozenset({"linear", "linear_bias", *ORDERS})
# powers of 2 and reciprocal square roots: torch's own loops are three times faster than MKL's eˣ
# and √x in float64
LOG2_E = 1 / math.log(2)


def lift_inputs(x: Tensor, isotropic: bool) -> Tensor:
    """Lift x [..., N, D] -> [..., N, E] so that its product with ``lift_centres`` is r².

    This uses one matrix product without broadcasting.  E = D + 2 if all input dimensions share one
    weight, 2 D + 1 otherwise.
    """
    square = x.square()
    return torch.cat(
        [x, torch.ones_like(x[..., :1]), square.sum(-1, keepdim=True) if isotropic else square], -1
    )


def lift_centres(z: Tensor, w: Tensor) -> Tensor:
    """z [G, M, D] and weights w [G, 1 or D] -> [G, M, E] with ⟨lift_centres(z)ₘ, lift_inputs(x)ₙ⟩ =
    r²ₘₙ."""
    w = w.unsqueeze(-2)  # [G, 1, 1 or D]
    zw = z * w
    return torch.cat(
        [-2 * zw, (z * zw).sum(-1, keepdim=True), w.expand(*z.shape[:-1], w.shape[-1])], -1
    )


def correlation(r2: Tensor, shape: Shape, slope: bool = True) -> tuple[Tensor, Tensor | None]:
    """κ(r²) and, if requested, dκ/dr², elementwise; ``r2`` is overwritten."""
    if shape == "squared_exponential":
        k = r2.clamp_min_(0).mul_(-0.5 * LOG2_E).exp2_()
        return k, (-0.5 * k if slope else None)
    if shape == "matern12":
        # dκ/dr² = −e⁻ʳ/(2r) has no limit at 0; if bounded, its product with x − x' = 0 is 0, as
        # symmetry requires
        inverse = r2.clamp_min_(torch.finfo(r2.dtype).eps).rsqrt()
        k = r2.mul_(inverse).mul_(-LOG2_E).exp2_()
        return k, inverse.mul_(k).mul_(-0.5) if slope else None
    r = r2.clamp_min_(torch.finfo(r2.dtype).tiny).rsqrt().mul_(r2)
    rate = 3.0**0.5 if shape == "matern32" else 5.0**0.5
    e = torch.mul(r, -rate * LOG2_E).exp2_()
    linear = torch.addcmul(e, r, e, value=rate, out=r)  # (1 + s) e⁻ˢ, s = √3 r or √5 r
    if shape == "matern32":
        return linear, (e.mul_(-1.5) if slope else None)
    k = torch.addcmul(linear, r2, e, value=5.0 / 3.0, out=r2)
    return k, (linear.mul_(-5.0 / 6.0) if slope else None)


class _Correlation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r2: Tensor, shape: Shape) -> Tensor:
        k, slope = correlation(r2.clone(), shape)
        ctx.save_for_backward(slope)
        return k

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        return gradient * ctx.saved_tensors[0], None


def angular_dependence(cosine: Tensor, n: int) -> Tensor:
    """J_n(θ) of eq. (2.20) for cos θ, elementwise, n ≤ 2.

    J₀ = π − θ, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ).
    """
    angle = math.pi - cosine.acos()
    if n == 0:
        return angle
    sine = (1 - cosine.square()).clamp_min_(0).sqrt_()
    if n == 1:
        return torch.addcmul(sine, angle, cosine)
    return 3 * sine * cosine + angle * (1 + 2 * cosine.square())


class _AngularDependence(torch.autograd.Function):
    """``angular_dependence`` with dJ_n/d cos θ = n² J_{n−1}, finite at θ = 0 for n ≥ 1; dJ₀/d cos θ
    = 1/sin θ has no limit at 0 and is clipped."""

    @staticmethod
    def forward(ctx, cosine: Tensor, n: int) -> Tensor:
        ctx.save_for_backward(cosine)
        ctx.n = n
        return angular_dependence(cosine, n)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        (cosine,) = ctx.saved_tensors
        if ctx.n:
            return gradient * ctx.n**2 * angular_dependence(cosine, ctx.n - 1), None
        sine2 = (1 - cosine.square()).clamp_min(torch.finfo(cosine.dtype).eps)
        return gradient * sine2.rsqrt(), None


def _bias(shape: Shape) -> float:
    """Square of the constant feature."""
    return 1.0 if shape.endswith("_bias") else 0.0


def product_kernel(x: Tensor, z: Tensor, w: Tensor, shape: Shape) -> Tensor:
    """κ(x, z) of ξ = √w ∘ x, or (√w ∘ x, 1) with a bias: ξ·ξ' (linear) or (1/π) ‖ξ‖ⁿ ‖ξ'‖ⁿ J_n(θ)
    (ArcCosine of order n), θ the angle between ξ and ξ'; x [..., N, D], z [..., M, D],
    w [..., 1 or D] -> [..., N, M].

    Source: Boustati (2021), eq. (2.20); Cho and Saul (2009), eqs. (1) and (3) to (6)."""
    rate = w.sqrt().unsqueeze(-2)
    a = x * rate
    b = z * rate
    bias = _bias(shape)
    product = a @ b.transpose(-1, -2) + bias
    if shape not in ORDERS:
        return product
    n = ORDERS[shape]
    tiny = torch.finfo(product.dtype).tiny  # ‖0‖ has no gradient
    a_norm, b_norm = ((v.square().sum(-1) + bias).clamp_min(tiny).sqrt() for v in (a, b))
    norms = a_norm.unsqueeze(-1) * b_norm.unsqueeze(-2)
    cosine = (product / norms).clamp(-1.0, 1.0)
    return norms**n * _AngularDependence.apply(cosine, n) / math.pi


def prior_variance(x: Tensor, w: Tensor, shape: Shape) -> Tensor:
    """κ(x, x) for x [..., N, D] and w [..., 1 or D]: [..., N], 1 for a stationary kernel."""
    if shape not in PRODUCT_SHAPES:
        return x.new_ones(x.shape[:-1])
    square = (x.square() * w.unsqueeze(-2)).sum(-1) + _bias(shape)  # ‖ξ‖²
    if shape not in ORDERS:
        return square
    n = ORDERS[shape]
    return square**n * (3.0 if n == 2 else 1.0)  # J_n(0)/π = 1, 1, 3


def kernel(x: Tensor, z: Tensor, lengthscale: Tensor, variance: Tensor, shape: Shape) -> Tensor:
    """σ² κ(x, z) for x [..., N, D], z [..., M, D], ℓ [..., 1 or D], σ² [...] -> [..., N, M]; κ of a
    stationary kernel is a function of Σ_d (x_d − z_d)²/ℓ_d².

    Source: Boustati (2021), eqs. (2.18) to (2.20) and (3.15); Rasmussen and Williams (2006),
    section 4.2.
    """
    w = lengthscale**-2
    if shape in PRODUCT_SHAPES:
        return variance[..., None, None] * product_kernel(x, z, w, shape)
    lifted = lift_inputs(x, isotropic=lengthscale.shape[-1] == 1)
    r2 = lifted @ lift_centres(z, w).transpose(-1, -2)
    return variance[..., None, None] * _Correlation.apply(r2, shape)
