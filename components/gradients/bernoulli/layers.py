"""Shared code of estimators for layers of binary variables: draws and the chain rule from log odds
to parameters.

"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.gradients.by_parameter import Gradients
from components.maths.exponential.standard_draws import standard_uniform


def uniform(shape: torch.Size, like: Tensor, rng: Rng) -> Tensor:
    """Uniform numbers on [0, 1) from the noise stream."""
    return standard_uniform(shape, rng.noise, like)


def logistic(u: Tensor) -> Tensor:
    """log u − log(1 − u) for u in [0, 1), clipped away from the ends."""
    tiny = torch.finfo(u.dtype).eps
    return u.clamp(tiny, 1 - tiny).logit()


@torch.no_grad()
def sample_upper_layers(
    module: BernoulliLayers[RowBatch], batch: RowBatch, below: Sequence[Tensor], rng: Rng
) -> tuple[Tensor, ...]:
    """The given layers, and a draw of all layers above them from the guide."""
    z = list(below)
    while len(z) < module.n_layers:
        alpha = module.logits(batch, z)
        z.append((uniform(alpha.shape, alpha, rng) < alpha.sigmoid()).to(alpha))
    return tuple(z)


def assemble_guide_gradients(
    module: BernoulliLayers[RowBatch],
    bound: Tensor,
    alphas: Sequence[Tensor],
    by_alpha: Sequence[Tensor],
) -> Gradients:
    """Gradients for every parameter, through p and through the log odds of the guide.

    They are the gradients of ``bound`` [] through p, and Σ_l (∂ℒ/∂α_l) ∂α_l/∂φ through the
    guide.  ``by_alpha`` holds estimates of ∂ℒ/∂α_l, where ℒ is the bound of the whole data
    set, in the shape of ``alphas`` [S, B, D_l].
    """
    surrogate = bound
    for alpha, gradient in zip(alphas, by_alpha, strict=True):
        surrogate = surrogate + (gradient.detach() * alpha).sum()
    return list(torch.autograd.grad(surrogate, list(module.parameters()), allow_unused=True))
