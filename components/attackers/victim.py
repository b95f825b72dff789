"""What an evasion attacker sees of the model that it attacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.trouble import Misfit


@dataclass(frozen=True)
class Victim:
    """A posterior under attack and the smallest and largest value an input can take (None: any)."""

    posterior: Any
    bounds: tuple[float, float] | None = None

    def log_prob(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Σ_t log p(y_t|x), the posterior predictive of class numbers y [B, T]; a missing label is negative. [B]"""
        log_prob = self.posterior.predict(x, generator).log_prob(y.clamp_min(0))
        return torch.where(y >= 0, log_prob, 0.0).sum(-1)

    def input_gradient(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """∇_x log p(y|x) [B, D] with respect to the input alone.

        Raises:
            ValueError: the prediction does not depend on the input in a differentiable way.
        """
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            total = self.log_prob(x, y, generator).sum()
            if not total.requires_grad:
                raise Misfit(
                    "attacker: it follows the gradient of the victim in its input, and this model has none; "
                    "attack a model made of a network or a Gaussian process"
                )
            return torch.autograd.grad(total, x)[0]

    def clip(self, x: Tensor) -> Tensor:
        """x moved into the bounds."""
        return x if self.bounds is None else x.clamp(*self.bounds)
