"""Densities with exact draws, the targets of the check ``stationarity``."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import standard_normal
from components.models.target_density import TargetDensityModule
from components.problems.density import Density

SLOPE = 0.6
SPREAD = 0.8
SCALE = 0.5  # scale of θ₁, so that a metric differs from its inverse
SKEW = {"a correlated Gaussian": 0.0, "a skewed density": 0.7}  # title -> a


class ExactTarget(TargetDensityModule):
    """A density on the plane with exact draws, as a model with two blocks.

        η₁ = sinh(arsinh z₁ + a),   η₂ = 0.6 η₁ + 0.8 z₂,   θ = (η₁/2, η₂),   z ~ N(0, I)

    Each block is one z, sampled given the other.

    Source: Jones and Pewsey (2009), eq. (2), for η₁.
    """

    blocks = (0, 1)

    def __init__(self, title: str, replicates: int) -> None:
        self.skew = SKEW[title]
        sample = self.sample_exactly
        names = ["x1", "x2"]
        box = [(-4.0, 4.0)] * 2
        density = Density(title, names, self.log_density, sample, None, None, box)
        density.replicates = replicates
        super().__init__(density)

    def whiten(self, theta: Tensor) -> Tensor:
        """z of θ [..., 2]."""
        first, second = theta.unbind(-1)
        first = first / SCALE
        z = torch.sinh(first.asinh() - self.skew)
        return torch.stack([z, (second - SLOPE * first) / SPREAD], -1)

    def colour(self, z: Tensor) -> Tensor:
        """θ of z [..., 2]."""
        first = torch.sinh(z[..., 0].asinh() + self.skew)
        return torch.stack([SCALE * first, SLOPE * first + SPREAD * z[..., 1]], -1)

    def log_density(self, theta: Tensor) -> Tensor:
        """Unnormalised log π [K] of θ [K, 2]."""
        z = self.whiten(theta)
        jacobian = z[:, 0].square().log1p() - (theta[:, 0] / SCALE).square().log1p()
        return 0.5 * (jacobian - z.square().sum(1))

    def sample_exactly(self, n: int, generator: torch.Generator) -> Tensor:
        """Independent draws [n, 2]."""
        like = torch.zeros((), dtype=torch.float64)
        return self.colour(standard_normal((n, 2), generator, like))

    def draw_block(
        self, block: int, theta: Tensor, batch: object, generator: torch.Generator
    ) -> Tensor:
        """Resample the z of a block of θ [K, 2]."""
        z = self.whiten(theta)
        z[:, block] = standard_normal((len(z),), generator, theta)
        return self.colour(z)
