"""Control variates that are gradients of surrogates quadratic in θ = m + L ε, with known mean.

If f is replaced by a quadratic, its slope r = ∇f̃(θ) is affine in the noise.  The pathwise gradient
of r with respect to the parameters φ of q is ∇_φ r·(m_φ + L_φ ε), with mean ∇_φ [E r·m_φ + tr(L_φᵀ
E r εᵀ)]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LocationScale
from components.contracts.costs.counts import count
from components.contracts.problems import RowBatch
from components.gradients.by_parameter import Gradients

Affine = tuple[Tensor, Tensor]  # m [B or 1, D] and L [B or 1, D, D] of q, as functions of φ


def apply_affine(q: Affine, noise: Tensor) -> Tensor:
    """θ = m + L ε [S, B, D] from noise ε [S, B, D]."""
    m, L = q
    return m + torch.einsum("bij,sbj->sbi", L.expand(noise.shape[1], -1, -1), noise)


def path(q: Affine, noise: Tensor, slope: Tensor) -> Tensor:
    """S⁻¹ Σ_sb r_sb·θ_φ(ε_sb) [] for slopes r [S, B, D], detached from φ."""
    return (slope * apply_affine(q, noise)).mean(0).sum()


def mean_path(q: Affine, slope: Tensor, cross: Tensor) -> Tensor:
    """Scalar with the mean gradient of ``path``: Σ_b [a_b·m + tr(Lᵀ C_b)] [].

    a = E r [B, D], C = E[r εᵀ] [B, D, D].
    """
    m, L = q
    return (slope * m).sum() + (cross * L).sum()


def detach_affine(q: Affine) -> Affine:
    """m and L detached from φ."""
    return q[0].detach(), q[1].detach()


def without(found: Gradients, surrogate: Tensor, parameters: list[nn.Parameter]) -> Gradients:
    """Gradients minus the zero-mean gradients of a surrogate."""
    corrections = torch.autograd.grad(surrogate, parameters, allow_unused=True)
    return [g if g is None or t is None else g - t for g, t in zip(found, corrections, strict=True)]


class Derivatives:
    """Slopes of f at points θ [S, B, D], or at [S, 1, D] for the sum of f over all rows, and
    products with its Hessian."""

    def __init__(self, module: LocationScale[RowBatch], batch: RowBatch, theta: Tensor):
        self.theta = theta.detach().clone().requires_grad_()
        value = module.rows_at(batch, self.theta).sum()
        (self._slope,) = torch.autograd.grad(value, self.theta, create_graph=True)

    @property
    def slope(self) -> Tensor:
        """∇f [S, B, D]."""
        return self._slope.detach()

    def times(self, v: Tensor) -> Tensor:
        """∇²f v [S, B, D] for v [S, B, D], in one backward pass."""
        if not self._slope.requires_grad:  # f is affine
            return torch.zeros_like(v)
        (product,) = torch.autograd.grad(
            self._slope, self.theta, v, retain_graph=True, allow_unused=True
        )
        return torch.zeros_like(v) if product is None else product

    def columns(self, L: Tensor) -> Tensor:
        """∇²f L [B, D, D] for L [B, D, D] and S = 1, in D backward passes."""
        count(gradients=L.shape[-1] - 1)  # one of them is counted with the slope
        return torch.cat([self.times(column[None]) for column in L.unbind(-1)]).permute(1, 2, 0)
