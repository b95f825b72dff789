"""Mean-field variational inference for the weights of a network (Bayes by backprop)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import AffineLayers, WeightSpace
from components.contracts.problems import Batch
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.gaussian_weights.mean_field import (
    MeanField,
    MeanFieldMethod,
    MeanFieldState,
)
from components.inference.variational.ascent import warmup_weight
from components.problems.supervised import Supervised
from components.registry import register


@register("inference", "mean_field_vi")
class MeanFieldVI(MeanFieldMethod):
    """Mean-field VI of network weights: independent Gaussians, by stochastic gradients (Adam).

    L = N/B Σ_b S⁻¹ Σ_s log p(y_b|x_b, θ_s) − κ KL(q ‖ p) + log p(σ²), θ_s ~ q
    reparameterised; the observation noise σ² is a point estimate.  κ = ``kl_scale`` = 1
    makes L a lower bound on log p(y).  In the first ``warmup`` steps the KL term of the
    optimised objective has the weight β κ, with β rising from 0 to 1; ``elbo`` has κ
    throughout.

    Raises:
        ConfigMismatchError: noise on pre-activations (``estimator`` local) is requested for
            convolutions, in which pixels share weights.

    Source: Blundell et al. (2015), section 3; Kingma, Salimans and Welling (2015), eq. (6);
    Rodríguez Santana and Hernández-Lobato (2020), section 6.2, for the warm-up.
    """

    estimator: Literal["local", "weights"]
    kl_scale: PositiveFloat
    warmup: NonNegativeInt

    def asked_by_keys(self) -> dict[type, str]:
        return {AffineLayers: "estimator"} if self.estimator == "local" else {}

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> MeanFieldState:
        if self.estimator == "local" and model.shares_weights:
            raise ConfigMismatchError(
                "inference.estimator: noise on pre-activations (local) does not apply to "
                "convolutions, in which pixels share weights; use weights"
            )
        return super().init(model, problem, rng)

    def terms(
        self, q: MeanField, t: int, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Unbiased estimates of the bound and of its two terms, each [], and the objective of the
        warm-up."""
        if self.estimator == "local":
            f = q.local(batch.x, self.n_samples, generator)
        else:
            f = q.network.outputs(q.draw(self.n_samples, generator), batch.x)
        log_likelihood = (batch.scale / self.n_samples) * q.network.log_prob(f, batch).sum()
        kl = q.kl()
        elbo = log_likelihood - self.kl_scale * kl + q.network.hyperprior()
        terms = {"elbo": elbo, "log_likelihood": log_likelihood, "kl": kl}
        if (beta := warmup_weight(t, self.warmup)) < 1:
            terms["objective"] = elbo + (1 - beta) * self.kl_scale * kl
        return terms
