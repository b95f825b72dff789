"""Densities with exact draws, on which the check ``stationarity`` starts a sampler."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import standard_normal
from components.models.target_density import TargetDensityModule
from components.problems.density import Density

SHAPE = 3.0  # of the precision λ of the skewed target, Γ(3, 3) with mean 1


class ExactTarget(TargetDensityModule):
    """A density on the plane that starts chains at exact draws, as a model with conditionals.

    ``whiten`` maps its draws to N(0, I), so that all functions of a test have one known law.
    """

    blocks = ("first", "second")
    title: str

    def __init__(self, replicates: int) -> None:
        super().__init__(
            Density(
                name=self.title,
                names=["x1", "x2"],
                log_density=self.log_density,
                sample_prior=self.sample_exactly,
                mean=None,
                second_moment=None,
                box=[(-4.0, 4.0)] * 2,
                replicates=replicates,
            )
        )

    def log_density(self, theta: Tensor) -> Tensor:
        """log π of θ [K, 2], not normalised [K]."""
        raise NotImplementedError

    def sample_exactly(self, n: int, generator: torch.Generator) -> Tensor:
        """Independent draws [n, 2]."""
        raise NotImplementedError

    def whiten(self, theta: Tensor) -> Tensor:
        """z [..., 2] of θ [..., 2]: independent and standard normal for draws of π."""
        raise NotImplementedError

    def draw_block(
        self, block: str, theta: Tensor, batch: object, generator: torch.Generator
    ) -> Tensor:
        """θ [K, 2] with one coordinate from its full conditional."""
        raise NotImplementedError


class CorrelatedGaussian(ExactTarget):
    """N(0, [[1, ρ], [ρ, 1]]) about (1, −1) with ρ = 0.6."""

    title = "a correlated Gaussian"
    rho = 0.6
    rest = 0.8  # √(1 − ρ²)

    @cached_property
    def centre(self) -> Tensor:
        return torch.tensor([1.0, -1.0], dtype=torch.float64)

    def log_density(self, theta: Tensor) -> Tensor:
        return -0.5 * self.whiten(theta).square().sum(-1)

    def sample_exactly(self, n: int, generator: torch.Generator) -> Tensor:
        z = standard_normal((n, 2), generator, self.centre)
        return self.centre + torch.stack([z[:, 0], self.rho * z[:, 0] + self.rest * z[:, 1]], 1)

    def whiten(self, theta: Tensor) -> Tensor:
        first, second = (theta - self.centre).unbind(-1)
        return torch.stack([first, (second - self.rho * first) / self.rest], -1)

    def draw_block(
        self, block: str, theta: Tensor, batch: object, generator: torch.Generator
    ) -> Tensor:
        j = self.blocks.index(block)
        z = standard_normal((len(theta),), generator, theta)
        other = theta[:, 1 - j] - self.centre[1 - j]
        theta = theta.clone()
        theta[:, j] = self.centre[j] + self.rho * other + self.rest * z
        return theta


class NormalGamma(ExactTarget):
    """(log λ, μ) with λ ~ Γ(3, 3) and μ | λ ~ N(1, 1/λ): skewed, and with a log-Jacobian."""

    title = "a skewed density"

    def log_density(self, theta: Tensor) -> Tensor:
        log_rate, mu = theta.unbind(-1)
        return (SHAPE + 0.5) * log_rate - log_rate.exp() * (SHAPE + 0.5 * (mu - 1).square())

    def sample_exactly(self, n: int, generator: torch.Generator) -> Tensor:
        shape = torch.full((n,), SHAPE, dtype=torch.float64)
        rate = torch._standard_gamma(shape, generator=generator) / SHAPE
        z = standard_normal((n,), generator, rate)
        return torch.stack([rate.log(), 1 + z / rate.sqrt()], 1)

    def whiten(self, theta: Tensor) -> Tensor:
        log_rate, mu = theta.unbind(-1)
        rate = log_rate.exp()
        share = torch.special.gammainc(torch.full_like(rate, SHAPE), SHAPE * rate)
        z = torch.special.ndtri(share.clamp(1e-12, 1 - 1e-12))
        return torch.stack([z, (mu - 1) * rate.sqrt()], -1)

    def draw_block(
        self, block: str, theta: Tensor, batch: object, generator: torch.Generator
    ) -> Tensor:
        log_rate, mu = theta.unbind(-1)
        if block == "second":
            z = standard_normal(mu.shape, generator, mu)
            return torch.stack([log_rate, 1 + z * (-0.5 * log_rate).exp()], -1)
        gamma = torch._standard_gamma(torch.full_like(mu, SHAPE + 0.5), generator=generator)
        return torch.stack([(gamma / (SHAPE + 0.5 * (mu - 1).square())).log(), mu], -1)
