"""Variational inference for a network's weights with Rényi's divergence."""

from __future__ import annotations

import torch
from pydantic import NonNegativeFloat
from torch import Tensor

from components.contracts.problems import Batch
from components.inference.alpha.power_mean import log_power_mean
from components.inference.gaussian_weights.mean_field import MeanField, MeanFieldMethod
from components.registry import register


@register("inference", "renyi_vi")
class RenyiVI(MeanFieldMethod):
    """Rényi variational inference: a mean-field Gaussian that ascends the Rényi bound.

        L_α(φ) = (1 − α)⁻¹ log K⁻¹ Σ_k exp (1 − α) w_k,   θ_k ~ q
        w_k = N/B Σ_b log p(y_b|x_b, θ_k) + log p(θ_k) − log q(θ_k)

    q is a distribution of a network's weights; L_α is the variational Rényi bound.  log σ² is a
    point estimate; log p(σ²) is added.  α = 1 is variational inference (the mean of w),
    α = 0 the importance-weighted bound; K = 1 is variational inference for every α.  With
    all rows in one batch the mean of L_α is a lower bound on log p(y) for α ≥ 0.  With minibatches
    it is not a bound, because w then differs between batches inside the logarithm, and Info reports
    ``objective``.

    Source: Li and Turner (2016), sections 3, 4.1 and 4.3.
    """

    alpha: NonNegativeFloat

    def terms(
        self, q: MeanField, t: int, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """L_α and the mean log-likelihood of all rows, each []."""
        network = q.network
        theta = q.draw(self.n_samples, generator)  # [K, P]
        log_ratio = q.exponents(theta) + q.log_scales  # log p(θ) − log q(θ) [K]
        # [K]
        log_likelihood = batch.scale * network.log_prob(network.outputs(theta, batch.x), batch).sum(
            1
        )
        objective = (
            log_power_mean(log_likelihood + log_ratio, 1 - self.alpha) + network.hyperprior()
        )
        return {"objective": objective, "log_likelihood": log_likelihood.mean()}
