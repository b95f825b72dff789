"""Particles: parameter vectors with averaged predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from components.contracts.capabilities import OwnInputs, ThetaPredictive
from components.contracts.capabilities.networks import CastableNetwork, ReversesPredictive
from components.contracts.predictive import Categorical, Predictive, Reverse, ReversedPredictive
from components.maths.spacing import sample_rows


@dataclass(frozen=True)
class Particles:
    """An equally weighted mixture of K parameter vectors θ [K, P]: the last states of K chains."""

    model: ThetaPredictive
    theta: Tensor

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """K⁻¹ Σ_k p(y|x, θ_k) at x [B, D]; differentiable in x."""
        return self.model.predictive(self.theta, x)

    def reverse(self, x: Tensor, generator: torch.Generator) -> ReversedPredictive:
        """Predictive, and a function from ∂/∂f [K, B, T, C] to ∂/∂x [B, D] without autograd graph;
        None if not available for the model."""
        return (
            self.model.predictive_reversed(self.theta, x)
            if isinstance(self.model, ReversesPredictive)
            else None
        )

    def in_format(self, dtype: torch.dtype) -> Self | None:
        """A copy in another floating-point format; None if not available for the model."""
        if not isinstance(self.model, CastableNetwork):
            return None
        return replace(self, model=self.model.in_format(dtype), theta=self.theta.detach().to(dtype))

    def some(self, n: int, generator: torch.Generator | None) -> Particles:
        """n of the particles: at random with replacement, or the first n without a generator."""
        rows = sample_rows(len(self.theta), n, generator)
        return Particles(self.model, self.theta[rows.to(self.theta.device)])


@dataclass(frozen=True)
class BlockwiseParticles(Particles):
    """K particles θ [K, P], each the victim for its own block of B out of K B rows.

    All attacks run together.
    """

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """Predictive at x [K B, D], with the k-th particle for the k-th block; differentiable in
        x."""
        blocks = x.unflatten(0, (len(self.theta), -1))  # [K, B, D]
        if isinstance(self.model, OwnInputs) and self.model.own_inputs:
            parts = [self.model.predictive(self.theta, blocks)]
        else:
            parts = [
                self.model.predictive(*pair)
                for pair in zip(self.theta.split(1), blocks, strict=True)
            ]
        # [K, B, T, C]
        logits = torch.cat([part.logits for part in parts if isinstance(part, Categorical)])
        return Categorical(logits.flatten(0, 1).unsqueeze(0))

    def reverse(self, x: Tensor, generator: torch.Generator) -> tuple[Categorical, Reverse] | None:
        """Predictive, and a function from ∂/∂f [1, K B, T, C] to ∂/∂x [K B, D] without autograd
        graph; None if not available for the model."""
        if not isinstance(self.model, ReversesPredictive):
            return None
        both = self.model.predictive_reversed(self.theta, x.unflatten(0, (len(self.theta), -1)))
        if both is None or not isinstance(both[0], Categorical):
            return None
        logits = both[0].logits
        back = both[1]  # [K, B, T, C]
        return Categorical(logits.flatten(0, 1)[None]), lambda g: back(
            g.view(logits.shape)
        ).flatten(0, 1)
