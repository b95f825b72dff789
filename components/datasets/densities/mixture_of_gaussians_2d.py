"""A square grid of isotropic Gaussians in the plane: a target with many separate modes."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.figures.samples.particles_2d import particles_2d
from components.figures.samples.trace import trace
from components.problems.density import Density
from components.registry import register


@register("dataset", "mixture_of_gaussians_2d")
class MixtureOfGaussians2D(NormalStart):
    """Grid of equally weighted isotropic Gaussians in the plane, 3 × 3 as published.

    π(θ) = n⁻² Σ_k N(θ | m_k, v I), m_k on {−s(n−1)/2, …, s(n−1)/2}²; E[θ] = 0, E[θ_j²] = v + s²(n²
    − 1)/12.

    Source: Gallego (2021), section 2.3.3."""

    per_side: PositiveInt
    spacing: PositiveFloat
    variance: PositiveFloat
    start_mean: Annotated[list[float], Field(min_length=2, max_length=2)]

    def load(self, rng: Rng, setting: Setting) -> Density:
        side = self.spacing * (setting.tensor(range(self.per_side)) - (self.per_side - 1) / 2)
        means = torch.cartesian_prod(side, side)  # [M, 2]
        reach = self.spacing * (self.per_side - 1) / 2 + 5 * self.variance**0.5
        start_mean = setting.tensor(self.start_mean)

        log_constant = math.log(2 * math.pi * self.variance * len(means))

        def log_density(theta: Tensor) -> Tensor:
            square = (theta.unsqueeze(1) - means).square().sum(-1)  # [K, M]
            return torch.logsumexp(-square / (2 * self.variance), 1) - log_constant  # [K]

        return self.make_density(
            setting,
            ["x1", "x2"],
            log_density,
            start_mean,
            mean=means.mean(0),
            second_moment=means.square().mean(0) + self.variance,
            fourth_moment=(means**4 + 6 * self.variance * means.square()).mean(0)
            + 3 * self.variance**2,
            box=[(-reach, reach)] * 2,
            figures=[particles_2d, trace],
        )
