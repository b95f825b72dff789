"""Several networks, as separate modules, with averaged predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from components.contracts.capabilities import Network
from components.contracts.capabilities.networks import CastableNetwork, ReversesInputs
from components.contracts.predictive import (
    Categorical,
    GaussianMixture,
    Predictive,
    ReversedPredictive,
)
from components.maths.spacing import sample_rows

N = TypeVar("N", bound=Network)


@dataclass(frozen=True)
class Networks(Generic[N]):
    """A mixture of K networks, equally weighted."""

    networks: tuple[N, ...]

    def predict(self, x: torch.Tensor, generator: torch.Generator) -> Predictive:
        """K⁻¹ Σ_k p(y|x, θ_k) at x [B, D]; differentiable in x."""
        parts = [network.output_predictive(network(x).unsqueeze(0)) for network in self.networks]
        normal = [part for part in parts if isinstance(part, GaussianMixture)]
        if normal:
            return GaussianMixture(
                torch.cat([p.mu for p in normal]), torch.cat([p.v for p in normal])
            )
        return Categorical(torch.cat([p.logits for p in parts if isinstance(p, Categorical)]))

    def some(self, n: int, generator: torch.Generator | None) -> Networks[N]:
        """n of the networks: at random with replacement, or the first n without a generator."""
        rows = sample_rows(len(self.networks), n, generator)
        return Networks(tuple(self.networks[k] for k in rows.tolist()))

    def reverse(self, x: torch.Tensor, generator: torch.Generator) -> ReversedPredictive:
        """Predictive, and a function from ∂/∂f [K, B, T, C] to ∂/∂x [B, D] without autograd graph;
        None if not available for a network."""
        pairs = [
            both
            for n in self.networks
            if isinstance(n, ReversesInputs) and (both := n.reverse(x)) is not None
        ]
        if len(pairs) < len(self.networks):
            return None
        predictive = self.networks[0].output_predictive(torch.stack([f for f, _ in pairs]))
        return predictive, lambda g: torch.stack(
            [back(slope) for (_, back), slope in zip(pairs, g, strict=True)]
        ).sum(0)

    def in_format(self, dtype: torch.dtype) -> Networks[CastableNetwork] | None:
        """A copy in another floating-point format; None if not available for a network."""
        copies = [
            network.in_format(dtype)
            for network in self.networks
            if isinstance(network, CastableNetwork)
        ]
        return Networks(tuple(copies)) if len(copies) == len(self.networks) else None
