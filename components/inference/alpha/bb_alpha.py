"""Black-box α-divergence minimisation for the weights of a network."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import AboveZeroToOne
from components.inference.alpha.power_mean import log_power_mean
from components.inference.gaussian_weights.mean_field import MeanField, MeanFieldMethod
from components.maths.exponential.standard_draws import standard_normal
from components.registry import register


@register("inference", "bb_alpha")
class BlackBoxAlpha(MeanFieldMethod):
    """Black-box α: a mean-field Gaussian over a network's weights by local α-divergences with one
    factor tied over all rows.

        L(φ) = log Z_q − log Z_p + α⁻¹ Σ_n log E_q[(p(y_n|x_n, θ) / f̃(θ))^α],   q ∝ f̃^N p,   θ_k ~ q shared by the rows

    with E_q by K draws and Σ_n by N/B Σ_b; log σ² is a point estimate, log p(σ²) is added.  With q
    = N(μ, diag σ²), p = N(0, diag s²) and θ = μ + σ ∘ ε it is Σ_p log σ_p/s_p + N/(B α) Σ_b log K⁻¹
    Σ_k exp α {ℓ_bk − N⁻¹ Σ_p ½ (θ_kp²/s_p² − ε_kp²)}, in which μ²/σ² has cancelled.  α → 0 is
    variational inference, α = 1 is close to expectation propagation.  The logarithm of a mean of K
    is biased.  Info: ``objective``, a bound on log p(y) only for α → 0, and ``log_likelihood``.

    ``draws_from: cavity`` estimates the same L by draws of the cavity q̃ ∝ q/f̃^α:

        L(φ) = α⁻¹ Σ_n log E_q̃[p(y_n|x_n, θ)^α] − R_β[q̃ ‖ p],   β = N/(N − α),   q ∝ q̃ (q̃/p)^{α/(N−α)}

    whose weights contain no ratio of densities; Rényi's divergence R_β has a closed form.

    Source: Hernández-Lobato, Li, Rowland, Hernández-Lobato, Bui and Turner (2016), section 3;
    Rodríguez Santana and Hernández-Lobato (2020), eqs. (22) and (24) to (26)."""

    alpha: AboveZeroToOne
    draws_from: Literal["posterior", "cavity"]

    def cavity(self, q: MeanField, n: float) -> tuple[Tensor, Tensor, Tensor]:
        """Means and standard deviations of q̃ = N(μ̃, diag σ̃²) ∝ q^{1 − α/N} p^{α/N} [P], and
        R_β[q̃ ‖ p] [].

        With r = σ²/s² of each weight, R_β = ½ Σ {N/α log(1 + α (r − 1)/N) − log r + (μ²/s²) (N −
        α)/(N − α + α r)}.
        """
        mu = q.network.theta
        prior = q.network.prior_std.square()
        r = (2 * q.log_std).exp() / prior
        a = self.alpha
        shrunk = (n - a) / (n - a + a * r)  # μ̃/μ
        log_ratios = n / a * (a / n * (r - 1)).log1p() - r.log()
        renyi = 0.5 * (log_ratios + mu.square() / prior * shrunk).sum()
        return shrunk * mu, (q.log_std - 0.5 * (a / n * (r - 1)).log1p()).exp(), renyi

    def cavity_objective(
        self, q: MeanField, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """L by K draws of the cavity (eq. 25), and the mean log-likelihood of all rows, each []."""
        network = q.network
        mean, std, renyi = self.cavity(q, batch.scale * len(batch.x))
        noise = standard_normal((self.n_samples, len(mean)), generator, mean)
        ell = network.log_prob(network.outputs(mean + std * noise, batch.x), batch)  # [K, B]
        tilted = batch.scale * log_power_mean(ell, self.alpha).sum()
        objective = tilted - renyi + network.hyperprior()
        return {"objective": objective, "log_likelihood": batch.scale * ell.mean(0).sum()}

    def terms(
        self, q: MeanField, t: int, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """L and the mean log-likelihood of all rows, each []."""
        if self.draws_from == "cavity":
            return self.cavity_objective(q, batch, generator)
        network = q.network
        theta = q.draw(self.n_samples, generator)  # [K, P]
        # log f̃ without the terms that cancel [K]
        factor = -q.exponents(theta) / (batch.scale * len(batch.x))
        ell = network.log_prob(network.outputs(theta, batch.x), batch)  # [K, B]
        tilted = batch.scale * log_power_mean(ell - factor[:, None], self.alpha).sum()
        objective = q.log_scales + tilted + network.hyperprior()
        return {"objective": objective, "log_likelihood": batch.scale * ell.mean(0).sum()}
