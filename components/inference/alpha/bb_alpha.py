"""Black-box α-divergence minimisation for the weights of a network."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from components.contracts.problems import Batch
from components.inference.alpha.divergence_vi import DivergenceVI
from components.inference.variational.mean_field_vi import MeanField
from components.maths.power_mean import log_power_mean
from components.registry import register


@register("inference", "bb_alpha")
class BlackBoxAlpha(DivergenceVI):
    """Black-box α: a mean-field Gaussian over a network's weights by local α-divergences with one
    factor tied over all rows.

        L(φ) = log Z_q − log Z_p + α⁻¹ Σ_n log E_q[(p(y_n|x_n, θ) / f̃(θ))^α],   q ∝ f̃^N p,   θ_k ~ q shared by the rows

    with E_q by K draws and Σ_n by N/B Σ_b; log σ² is a point, log p(σ²) is added.  With q = N(μ,
    diag σ²), p = N(0, diag s²) and θ = μ + σ ∘ ε it is Σ_p log σ_p/s_p + N/(B α) Σ_b log K⁻¹ Σ_k
    exp α {ℓ_bk − N⁻¹ Σ_p ½ (θ_kp²/s_p² − ε_kp²)}, in which μ²/σ² has cancelled.  α → 0 is
    variational inference, α = 1 near expectation propagation. The logarithm of a mean of K is
    biased. Info: ``objective``, which is no bound on log p(y) unless α → 0, and ``log_likelihood``.

    Source: Hernández-Lobato, Li, Rowland, Hernández-Lobato, Bui and Turner (2016), section 3;
    Rodríguez Santana and Hernández-Lobato (2020), eq. (22)."""

    alpha: Annotated[float, Field(gt=0, le=1)]

    def objective(
        self, q: MeanField, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """L and the mean log likelihood of all rows, each []."""
        network = q.network
        theta = q.draw(self.n_samples, generator)  # [K, P]
        # log f̃ without the terms that cancel [K]
        factor = -self.exponents(q, theta) / (batch.scale * len(batch.x))
        ell = network.log_prob(network.outputs(theta, batch.x), batch)  # [K, B]
        tilted = batch.scale * log_power_mean(ell - factor[:, None], self.alpha).sum()
        objective = self.log_scales(q) + tilted + network.hyperprior()
        return {"objective": objective, "log_likelihood": batch.scale * ell.mean(0).sum()}
