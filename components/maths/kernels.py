"""Stationary correlation functions of r² = Σ_d w_d (x_d − x'_d)², w = 1/ℓ²: values and slopes by
hand.

A kernel is σ² κ(r²) (Boustati (2021), eq. (3.15)); σ² is applied by whoever uses κ, so that
matrices here have a unit diagonal and a jitter is relative to the signal variance.  Slopes dκ/dr²
need no case at r = 0, except Matérn-1/2's."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Shape = Literal["matern12", "matern32", "matern52", "squared_exponential"]


def lift_inputs(x: Tensor, isotropic: bool) -> Tensor:
    """Lift x [..., N, D] -> [..., N, E] so that its product with ``lift_centres`` is r².

    This takes one matrix product and no broadcast.  E = D + 2 if one weight applies to
    every input dimension, 2 D + 1 otherwise.
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
    """κ(r²) and, if asked for, dκ/dr², elementwise; ``r2`` is overwritten."""
    if shape == "squared_exponential":
        k = r2.clamp_min_(0).mul_(-0.5).exp_()
        return k, (-0.5 * k if slope else None)
    if shape == "matern12":
        # dκ/dr² = −e⁻ʳ/(2r) has no limit at 0; bounded, its product with x − x' = 0 is the 0 that
        # symmetry asks for.
        r = r2.clamp_min_(torch.finfo(r2.dtype).eps).sqrt_()
        k = torch.exp(-r)
        return k, (k / r).mul_(-0.5) if slope else None
    if shape == "matern32":
        s = r2.clamp_min_(0).mul_(3.0).sqrt_()
        e = torch.neg(s).exp_()
        return s.add_(1).mul_(e), (e.mul_(-1.5) if slope else None)
    s = r2.clamp_min_(0).mul(5.0).sqrt_()
    e = torch.neg(s).exp_()
    s.add_(1).mul_(e)  # (1 + s) e⁻ˢ
    k = torch.addcmul(s, e, r2, value=5.0 / 3.0)
    return k, (s.mul_(-5.0 / 6.0) if slope else None)


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


def kernel(x: Tensor, z: Tensor, lengthscale: Tensor, variance: Tensor, shape: Shape) -> Tensor:
    """σ² κ(Σ_d (x_d − z_d)²/ℓ_d²) for x [..., N, D], z [..., M, D], ℓ [..., 1 or D], σ² [...] ->
    [..., N, M].

    Source: Boustati (2021), eq. (3.15); Rasmussen and Williams (2006), section 4.2.
    """
    isotropic = lengthscale.shape[-1] == 1
    lifted = lift_inputs(x, isotropic)
    r2 = lifted @ lift_centres(z, lengthscale**-2).transpose(-1, -2)
    return variance[..., None, None] * _Correlation.apply(r2, shape)
