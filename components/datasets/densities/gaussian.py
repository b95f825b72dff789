"""A multivariate Gaussian as a target, for checks of all moments of a sampler."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart, number_coordinates
from components.figures.samples.particles_2d import particles_2d
from components.figures.samples.trace import trace
from components.figures.samples.trajectories_2d import trajectories_2d
from components.figures.variational.beside_exact import target_contours
from components.problems.density import Density
from components.registry import register


@register("dataset", "gaussian")
class Gaussian(NormalStart):
    """A Gaussian target of any dimension with equal correlation between all coordinates.

    π(θ) = N(θ | μ, Σ), Σ_ij = σ_i σ_j (ρ + (1 − ρ) [i = j]), θ [K, P]; E[θ] = μ, E[θ_j²] = μ_j² +
    σ_j².  Lists give one value per coordinate; a number applies to all.  Samplers start at
    N(start_mean, start_sd² I).

    Source: Gallego (2021), section 2.3.1."""

    dim: PositiveInt
    mean: float | list[float]
    sd: PositiveFloat | list[PositiveFloat]
    correlation: float
    start_mean: float | list[float]

    @model_validator(mode="after")
    def _check_consistency(self) -> Gaussian:
        for key, value in (("mean", self.mean), ("sd", self.sd), ("start_mean", self.start_mean)):
            if isinstance(value, list) and len(value) != self.dim:
                raise ValueError(
                    f"{key}: {len(value)} values for dim={self.dim}; give {self.dim}, or a single number"
                )
        lowest = -1 / (self.dim - 1) if self.dim > 1 else -1.0
        if not lowest < self.correlation < 1:
            raise ValueError(
                f"correlation: {self.correlation:g} is not a correlation of a valid covariance; "
                f"use a value in ({lowest:.3g}, 1)"
            )
        return self

    def load(self, rng: Rng, setting: Setting) -> Density:
        mean, sd, start = (
            setting.tensor(v).expand(self.dim) for v in (self.mean, self.sd, self.start_mean)
        )  # [P] each
        unit = mean.new_full((self.dim, self.dim), self.correlation).fill_diagonal_(1)
        factor = torch.linalg.cholesky(sd.unsqueeze(1) * unit * sd)  # Σ = F Fᵀ
        log_constant = (
            -0.5 * self.dim * torch.log(setting.tensor(2 * torch.pi))
            - factor.diagonal().log().sum()
        )

        def log_density(theta: Tensor) -> Tensor:
            white = torch.linalg.solve_triangular(factor, (theta - mean).T, upper=False)  # [P, K]
            return log_constant - 0.5 * white.square().sum(0)  # [K]

        low = torch.minimum(mean - 3.5 * sd, start - 2.5 * self.start_sd)
        high = torch.maximum(mean + 3.5 * sd, start + 2.5 * self.start_sd)
        return self.make_density(
            setting,
            number_coordinates(self.dim),
            log_density,
            start,
            mean=mean,
            second_moment=mean.square() + sd.square(),
            box=list(zip(low.tolist(), high.tolist(), strict=True)),
            figures=[trajectories_2d, particles_2d, trace, target_contours],
        )
