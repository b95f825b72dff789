"""Network with point estimates of some parameters: the prior's variance, the biases."""

from __future__ import annotations

import copy
import math
from typing import Self

import torch
from torch import Tensor, nn

from components.contracts.capabilities.networks import Affine, Layers
from components.contracts.predictive import Predictive, ReversedOutputs
from components.contracts.problems import Batch
from components.models.networks.feed_forward import FeedForward


class EmpiricalBayesNetwork(nn.Module):
    """f(x) of a network with a learned prior variance, with point-estimate biases, or both.

    The prior is N(0, σ₀²) with a learned variance. Variance and biases have flat priors and are
    fitted by the objective of the posterior of θ [P], which holds the weights (``point_biases``) or
    weights and biases. ``prior_std`` is differentiable in log σ₀².

    Source: Rodríguez Santana and Hernández-Lobato (2020), end of section 4.3 (σ₀²) and
    published code (biases).
    """

    own_inputs = True  # K particles may have separate inputs, x [K, B, D]

    def __init__(
        self, network: FeedForward, *, point_biases: bool, learned_prior: bool, prior_std: float
    ):
        super().__init__()
        start = network.theta.detach()
        network.theta.requires_grad_(False)  # only initial values, not trained
        self.network = network
        self.sizes = network.pieces[::2] if point_biases else [len(start)]
        parts = start.split(network.pieces)
        self.theta = nn.Parameter(torch.cat(parts[::2]) if point_biases else start.clone())
        self.biases = nn.ParameterList(b.clone() for b in parts[1::2]) if point_biases else None
        log_variance = start.new_tensor(2 * math.log(prior_std))
        if learned_prior:
            self.log_prior_variance: Tensor = nn.Parameter(log_variance)  # log σ₀² []
        else:
            self.register_buffer("log_prior_variance", log_variance)

    @property
    def prior_std(self) -> Tensor:
        """σ₀ of every weight [P]."""
        return (0.5 * self.log_prior_variance).exp().expand(len(self.theta))

    @property
    def log_noise(self) -> Tensor:
        """log σ_t² [T]."""
        return self.network.log_noise

    @property
    def shares_weights(self) -> bool:
        return self.network.shares_weights

    @property
    def dropout(self) -> float:
        return self.network.dropout

    def with_biases(self, theta: Tensor) -> Tensor:
        """θ [..., P] with the biases inserted."""
        if self.biases is None:
            return theta
        pieces = zip(theta.split(self.sizes, -1), self.biases, strict=True)
        return torch.cat(
            [part for w, b in pieces for part in (w, b.expand(*theta.shape[:-1], -1))], -1
        )

    def forward(
        self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor:
        """f [B, T, C], or [S, B, T, C] for S dropout passes."""
        return self.network.at(self.with_biases(self.theta), x, generator, passes)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, B, T, C] at θ [K, P]."""
        return self.network.outputs(self.with_biases(theta), x)

    def reverse(self, x: Tensor) -> ReversedOutputs:
        """f [B, T, C], and a function from ∂/∂f to ∂/∂x [B, D]; None for convolutions."""
        return self.network.reverse_with_weights(self.with_biases(self.theta), x)

    def in_format(self, dtype: torch.dtype) -> Self:
        """Copy with weights and buffers in another floating-point format, without gradients."""
        return copy.deepcopy(self).to(dtype).requires_grad_(False)

    def layers(self, theta: Tensor) -> Layers:
        """θ [..., P] as (W [..., out, in], b [..., out]) of each layer."""
        return self.network.layers(self.with_biases(theta))

    def propagate(self, x: Tensor, affine: Affine) -> Tensor:
        return self.network.propagate(x, affine)

    def log_prob(self, f: Tensor, batch: Batch) -> Tensor:
        """Σ_t log p(y_t|f_t): f [..., B, T, C] -> [..., B]."""
        return self.network.log_prob(f, batch)

    def output_predictive(self, f: Tensor) -> Predictive:
        """Mixture over the samples of f [S, B, T, C]."""
        return self.network.output_predictive(f)

    def hyperprior(self) -> Tensor:
        """log p(log σ²) of the noise; other hyper-priors are flat."""
        return self.network.hyperprior()

    def penalty(self) -> Tensor:
        """½ Σ θ²/σ₀² − log p(log σ²), for a fixed σ₀."""
        return 0.5 * (self.theta / self.prior_std).square().sum() - self.hyperprior()
