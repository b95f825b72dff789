"""A mixture of two Gaussians on the line, its components told apart by the order of their means."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from components.datasets.posteriordb_densities.from_data import FromData
from components.maths.bijectors import Interval, Ordered
from components.maths.exponential.standard_draws import standard_normal

WIDTH = 2.0
# prior standard deviation of means and scales; both parameters of the weight's Beta prior
BETA = 5.0
MEANS = Ordered()
WEIGHT = Interval(0.0, 1.0)


@dataclass(frozen=True)
class TwoGaussians(FromData):
    """y_n ~ w N(μ_1, σ_1²) + (1 − w) N(μ_2, σ_2²), μ_k ~ N(0, 2²) with μ_1 < μ_2, σ_k ~ N⁺(0, 2²),
    w ~ Beta(5, 5).

    θ = (μ_1, log(μ_2 − μ_1), log σ, logit w) [K, 5]."""

    y: Tensor  # [N]

    dim = 5
    names = ["mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta"]

    def log_density(self, theta: Tensor) -> Tensor:
        mu, log_jacobian = MEANS.forward(theta[:, :2])
        log_scale = theta[:, 2:4]
        logit = theta[:, 4:]
        # log w, log(1 − w) [K, 2]
        log_weights = torch.cat([logsigmoid(logit), logsigmoid(-logit)], 1)
        constant = log_weights - log_scale
        precision = (-2 * log_scale).exp()
        first, second = (
            constant[:, k, None] - 0.5 * (self.y - mu[:, k, None]).square() * precision[:, k, None]
            for k in (0, 1)
        )  # [K, N] each
        log_likelihood = torch.logaddexp(first, second).sum(1)
        log_prior = -0.5 * (mu / WIDTH).square().sum(1) - 0.5 * (
            log_scale.exp() / WIDTH
        ).square().sum(1)
        log_prior = log_prior + (BETA - 1) * log_weights.sum(1)
        log_likelihood = torch.where(
            torch.isfinite(log_prior), log_likelihood, 0.0
        )  # NaN where μ = ∞; its prior is 0
        # last three: Jacobian
        return log_likelihood + log_prior + log_jacobian + log_scale.sum(1) + log_weights.sum(1)

    def constrain(self, theta: Tensor) -> Tensor:
        return torch.cat(
            [MEANS.forward(theta[:, :2])[0], theta[:, 2:4].exp(), theta[:, 4:].sigmoid()], 1
        )

    def unconstrain(self, parameters: Tensor) -> Tensor:
        means = MEANS.inverse(parameters[:, :2])
        return torch.cat([means, parameters[:, 2:4].log(), parameters[:, 4:].logit()], 1)

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """Means about the quarters of the data, moved by a tenth of their distance; log σ and logit
        w ~ N(0, ½²).

        Far from there one component takes all data and the other collapses on a few: chains take
        long to leave that."""
        z = standard_normal((n, self.dim), generator, self.y)
        low = self.y.quantile(0.25)
        high = self.y.quantile(0.75)
        first = low + 0.1 * (high - low) * z[:, :1]
        return torch.cat([first, (high - low).log() + 0.1 * z[:, 1:2], 0.5 * z[:, 2:]], 1)
