"""Draws of the latent variables of rows as functions of the guide, and gradients at draws."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.gradients.by_parameter import Gradients
from components.maths.exponential.standard_draws import standard_normal


def sample_latents(
    module: LatentVariable[RowBatch], batch: RowBatch, n_samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """z = m + s ε for ε ~ N(0, I) [S, B, D], with m and s [B, D]; differentiable in the guide."""
    m, s = module.encode(batch)
    return m + s * standard_normal((n_samples, *m.shape), generator, m), m, s


def joint_field(
    module: LatentVariable[RowBatch], batch: RowBatch, z: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """log p(x, z) [S, B] twice, as auxiliary value and as density of a draw, and its gradient [S,
    B, D]."""
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        value = module.log_joint(batch, z)
        (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), value.detach(), gradient


def split_gradient(parameters: Sequence[Tensor], of_model: Tensor, of_guide: Tensor) -> Gradients:
    """The gradient of ``of_model`` with respect to the parameters that it depends on, and of
    ``of_guide`` with respect to the others; None if neither depends on the parameter."""
    gradients = torch.autograd.grad(of_model, parameters, allow_unused=True)
    rest = [p for p, g in zip(parameters, gradients, strict=True) if g is None]
    others = iter(torch.autograd.grad(of_guide, rest, allow_unused=True) if rest else ())
    return [next(others) if g is None else g for g in gradients]
