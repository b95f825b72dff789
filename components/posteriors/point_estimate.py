"""One deterministic network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import Network
from components.contracts.capabilities.networks import CastableNetwork, ReversesInputs
from components.contracts.predictive import Predictive, ReversedPredictive


@dataclass(frozen=True)
class PointEstimate:
    """δ(θ − θ̂): one deterministic network."""

    network: Network

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Predictive of the network at x [B, D], S = 1; differentiable in x."""
        return self.network.output_predictive(self.network(x)[None])

    def reverse(self, x: Tensor, generator: torch.Generator) -> ReversedPredictive:
        """Predictive, and a function from ∂/∂f [1, B, T, C] to ∂/∂x [B, D] without autograd graph;
        None if not available for the network."""
        both = self.network.reverse(x) if isinstance(self.network, ReversesInputs) else None
        if both is None:
            return None
        f, back = both
        return self.network.output_predictive(f[None]), lambda g: back(g[0])

    def in_format(self, dtype: torch.dtype) -> PointEstimate | None:
        """A copy in another floating-point format; None if not available for the network."""
        return (
            PointEstimate(self.network.in_format(dtype))
            if isinstance(self.network, CastableNetwork)
            else None
        )
