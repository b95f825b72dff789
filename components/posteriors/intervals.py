"""Intervals as Bayes actions: central, and of highest density."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.posteriors.decisions import Belief, Samples, shortfall


# Interval estimation: actions [2, ...] are lower and upper ends
@dataclass(frozen=True)
class CentralInterval:
    """L = (u − l) + (2/δ) ((l − s)₊ + (s − u)₊): the interval between the quantiles of level δ/2
    and 1 − δ/2.

    Source: Gneiting and Raftery (2007), eq. (43)."""

    delta: float  # mass outside, in (0, 1)

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        low, high = action
        return (high - low) + (2 / self.delta) * ((low - s).clamp_min(0) + (s - high).clamp_min(0))

    def act(self, belief: Belief) -> Tensor:
        return torch.stack([belief.quantile(self.delta / 2), belief.quantile(1 - self.delta / 2)])

    def expected_loss(self, action: Tensor, belief: Belief) -> Tensor:
        low, high = action
        above = shortfall(belief, high) - (high - belief.mean)  # E[(s − u)₊]
        return (high - low) + (2 / self.delta) * (shortfall(belief, low) + above)


@dataclass(frozen=True)
class DensestInterval:
    """L = γ |I| − 1{s ∈ I}: a highest-density interval, with density γ at its ends.

    The source has the utility r₁ + γ r₂, r₂ = |I|, which rewards length unless γ < 0; here γ > 0
    and length is a cost.

    Source: Bardenet (2021), Figure 2.1, interval estimation."""

    gamma: float  # γ > 0, the density below which extra length does not pay

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        low, high = action
        return self.gamma * (high - low) - ((s >= low) & (s <= high)).to(s.dtype)

    def act(self, belief: Samples) -> Tensor:
        ordered, order = belief.values.flatten(1).sort(0)  # [S, d]
        inside = belief.weights[order].cumsum(0)
        # max over i ≤ j of (W_j − γ s_j) − (W_{i−1} − γ s_i) in one pass, with the best start so
        # far for each end
        opening = self.gamma * ordered - (inside - belief.weights[order])
        best, start = opening.cummax(0)
        end = (inside - self.gamma * ordered + best).argmax(0, keepdim=True)
        endpoints = torch.cat([ordered.gather(0, start.gather(0, end)), ordered.gather(0, end)])
        return endpoints.reshape(2, *belief.values.shape[1:])

    def expected_loss(self, action: Tensor, belief: Samples) -> Tensor:
        return torch.tensordot(belief.weights, self(action, belief.values), 1)
