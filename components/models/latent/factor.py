"""A factor of a density over layers of binary variables, with its derivative."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.models.latent.generative import log_bernoulli
from components.models.latent.perceptron import Perceptron


class Factor(NamedTuple):
    """log Bernoulli(v | sigmoid(α)), α = network(h), v [S, B, D] or [B, D]; its derivative by α is
    v − sigmoid(α).

    h is the same for all S draws where its first dimension is 1: their derivatives are summed
    before they meet it."""

    log_prob: Tensor  # [S, B]
    error: Tensor  # v − sigmoid(α) [S, B, D]
    network: Perceptron
    given: list[Tensor]  # what ``network.run`` gave beside α

    @classmethod
    def at(cls, v: Tensor, network: Perceptron, h: Tensor) -> Factor:
        """Factor of v with network input h [S, B, …]; nothing is recorded."""
        alpha, inputs = network.run(h)
        return cls(
            log_bernoulli(v, alpha), torch.sub(v, alpha.sigmoid_(), out=alpha), network, inputs
        )

    def pull_back(self, by: Tensor) -> list[Tensor]:
        """Σ_sb w_sb ∇ log Bernoulli(v_sb | sigmoid(α_sb)) for each parameter of the network in
        order, w [S, B]; to be had once, as large tensors are used again."""
        c = self.error.mul_(by[..., None])
        return self.network.pull_back(
            self.given, c.sum(0, keepdim=True) if self.given[0].shape[0] == 1 else c
        )
