"""Gaussian process regression on eleven points, its three hyperparameters unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import standard_normal

SHAPE = 25.0
RATE = 4.0
ALPHA = 2.0
SIGMA = 1.0  # ρ ~ Gamma(25, 4), α ~ N⁺(0, 2²), σ ~ N⁺(0, 1)


@dataclass(frozen=True)
class GaussianProcess:
    """y ~ N(0, α² exp(−(x − x')²/2ρ²) + σI): σ is a variance here;  θ = (log ρ, log α, log σ) [K, 3].

    Where rounding leaves the covariance without a Cholesky factor, the density is 0."""

    y: Tensor  # [N]
    square: Tensor  # (x − x')² [N, N]

    dim = 3
    names = ["rho", "alpha", "sigma"]

    @staticmethod
    def of(data: dict[str, Any], dtype: torch.dtype, device: torch.device) -> GaussianProcess:
        x, y = (torch.tensor(data[key], dtype=dtype, device=device) for key in ("x", "y"))
        return GaussianProcess(y, (x[:, None] - x).square())

    def log_density(self, theta: Tensor) -> Tensor:
        rho, alpha, sigma = theta.exp()[:, :, None, None].unbind(1)  # [K, 1, 1] each
        eye = torch.eye(len(self.y)).to(self.y)
        covariance = alpha.square() * (-0.5 * self.square / rho.square()).exp() + sigma * eye
        finite = torch.isfinite(covariance).flatten(1).all(1)
        # A failed matrix is replaced before it is factorised: its gradient would be NaN, and
        # Cholesky refuses some.
        L, info = torch.linalg.cholesky_ex(torch.where(finite[:, None, None], covariance, eye))
        good = finite & (info == 0)
        L = torch.where(good[:, None, None], L, eye)
        white = torch.linalg.solve_triangular(
            L, self.y.expand(len(theta), -1).unsqueeze(2), upper=False
        )
        log_likelihood = -L.diagonal(dim1=1, dim2=2).log().sum(1) - 0.5 * white.square().sum((1, 2))
        rho = rho.flatten()
        alpha = alpha.flatten()
        sigma = sigma.flatten()
        log_prior = (
            (SHAPE - 1) * theta[:, 0]
            - RATE * rho
            - 0.5 * (alpha / ALPHA) ** 2
            - 0.5 * (sigma / SIGMA) ** 2
        )
        # θ's sum: log-Jacobian
        return torch.where(good, log_likelihood + log_prior + theta.sum(1), -torch.inf)

    def constrain(self, theta: Tensor) -> Tensor:
        return theta.exp()

    def unconstrain(self, parameters: Tensor) -> Tensor:
        return parameters.log()

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """log ρ ~ N(log 25/4, 0.4²), log α ~ N(log 2, ½²), log σ ~ N(0, ½²): about as wide as the
        prior."""
        z = standard_normal((n, self.dim), generator, self.y)
        return z.new_tensor([SHAPE / RATE, ALPHA, SIGMA]).log() + z.new_tensor([0.4, 0.5, 0.5]) * z
