"""The negative bound of a module as a function of one vector of its parameters, for a line
search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from components.maths.line_search.limited_memory import Evaluation


def flatten(parameters: Iterable[Tensor]) -> Tensor:
    """Parameters as one vector θ [P], a copy."""
    return torch.cat([p.detach().reshape(-1) for p in parameters])


@torch.no_grad()
def assign(parameters: Sequence[Tensor], theta: Tensor) -> None:
    """The inverse of ``flatten``, in place."""
    for p, part in zip(parameters, theta.split([p.numel() for p in parameters]), strict=True):
        p.copy_(part.view_as(p))


def evaluate_bound(
    parameters: Sequence[Tensor], theta: Tensor, bound: Callable[[], dict[str, Tensor]]
) -> Evaluation:
    """f = −bound, ∇f [P] and the terms of the bound at θ; the parameters are set to θ."""
    assign(parameters, theta)
    terms = bound()
    gradients = torch.autograd.grad(
        -terms["elbo"], parameters, allow_unused=True, materialize_grads=True
    )
    values = {name: value.detach() for name, value in terms.items()}
    return -float(values["elbo"]), flatten(gradients), values
