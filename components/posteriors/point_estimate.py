"""One deterministic network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import Network
from components.contracts.predictive import Predictive


@dataclass(frozen=True)
class PointEstimate:
    """δ(θ − θ̂): one deterministic network."""

    network: Network

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Predictive of the one network at x [B, D], S = 1; differentiable in x."""
        return self.network.output_predictive(self.network(x)[None])
