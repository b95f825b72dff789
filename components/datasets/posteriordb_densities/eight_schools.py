"""Effects of coaching in eight schools: a hierarchy, its effects standardised (not centred)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.datasets.posteriordb_densities.from_data import FromData
from components.datasets.posteriordb_densities.scale_priors import half_cauchy
from components.maths.exponential.standard_draws import standard_normal

HEIGHT = 5.0
TAU = half_cauchy(5.0)  # prior standard deviation of μ, prior of τ


@dataclass(frozen=True)
class EightSchools(FromData):
    """y_j ~ N(ϑ_j, σ_j²), ϑ = μ + τη, η_j ~ N(0, 1), μ ~ N(0, 5²), τ ~ half-Cauchy(5);  θ = (η, μ, log τ)."""

    y: Tensor  # [J]
    sigma: Tensor  # [J]

    @property
    def names(self) -> list[str]:
        return [*(f"theta[{j}]" for j in range(1, len(self.y) + 1)), "mu", "tau"]

    @property
    def dim(self) -> int:
        return len(self.y) + 2

    def log_density(self, theta: Tensor) -> Tensor:
        eta = theta[:, :-2]
        mu = theta[:, -2]
        log_tau = theta[:, -1]
        error = (self.y - self.constrain(theta)[:, :-2]) / self.sigma
        log_prior = -0.5 * eta.square().sum(1) - 0.5 * (mu / HEIGHT).square() + TAU(log_tau)
        return log_prior - 0.5 * error.square().sum(1) + log_tau  # the last: log-Jacobian

    def constrain(self, theta: Tensor) -> Tensor:
        eta = theta[:, :-2]
        mu = theta[:, -2:-1]
        tau = theta[:, -1:].exp()
        return torch.cat([mu + tau * eta, mu, tau], 1)

    def unconstrain(self, parameters: Tensor) -> Tensor:
        mu = parameters[:, -2:-1]
        tau = parameters[:, -1:]
        return torch.cat([(parameters[:, :-2] - mu) / tau, mu, tau.log()], 1)

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """η ~ N(0, 1) and μ ~ N(0, 5²) from the prior, log τ ~ N(1, ½²), which leaves out the
        prior's far tail.

        There the η are a hundred times as narrow as in the middle: a step size that chains share
        would hold one fast."""
        z = standard_normal((n, self.dim), generator, self.y)
        return torch.cat([z[:, :-2], HEIGHT * z[:, -2:-1], 1.0 + 0.5 * z[:, -1:]], 1)
