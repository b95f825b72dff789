"""Particles: parameter vectors that predict together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import OwnInputs, ThetaPredictive
from components.contracts.predictive import Categorical, Predictive


@dataclass(frozen=True)
class Particles:
    """A mixture of K parameter vectors θ [K, P], equally weighted: the last states of as many chains, and no more."""

    model: ThetaPredictive
    theta: Tensor

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """K⁻¹ Σ_k p(y|x, θ_k) at x [B, D]; differentiable in x."""
        return self.model.predictive(self.theta, x)

    def some(self, n: int, generator: torch.Generator | None) -> Particles:
        """n of the particles: at random with replacement, or the first n without a generator."""
        if generator is None:
            return Particles(self.model, self.theta[:n])
        rows = torch.randint(len(self.theta), (n,), generator=generator, device=generator.device)
        return Particles(self.model, self.theta[rows.to(self.theta.device)])


@dataclass(frozen=True)
class OwnRows:
    """K particles θ [K, P], each the victim of its own block of B of the K B rows: all attacks at once."""

    model: ThetaPredictive
    theta: Tensor

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """Predictive of x [K B, D], its k-th block by the k-th particle; differentiable in x."""
        blocks = x.unflatten(0, (len(self.theta), -1))  # [K, B, D]
        if isinstance(self.model, OwnInputs) and self.model.own_inputs:
            parts = [self.model.predictive(self.theta, blocks)]
        else:
            parts = [self.model.predictive(*pair) for pair in zip(self.theta.split(1), blocks, strict=True)]
        logits = torch.cat([part.logits for part in parts if isinstance(part, Categorical)])  # [K, B, T, C]
        return Categorical(logits.flatten(0, 1).unsqueeze(0))
