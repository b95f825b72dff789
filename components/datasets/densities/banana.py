"""A banana-shaped twisted Gaussian."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart, number_coordinates
from components.figures.samples.marginal_2d import marginal_2d
from components.figures.samples.trace import trace
from components.maths.cholesky import LOG_2PI
from components.problems.density import Density
from components.registry import register


@register("dataset", "banana")
class Banana(NormalStart):
    """Twisted Gaussian with its second coordinate bent along a parabola of the first.

    z ~ N(0, diag(s², 1, …, 1)), θ_1 = z_1, θ_2 = z_2 − b (z_1² − s²), θ_j = z_j; the twist
    has Jacobian 1, so that log π(θ) = log N(z(θ)).  E[θ] = 0, E[θ_1²] = s²,
    E[θ_2²] = 1 + 2b²s⁴, E[θ_j²] = 1.

    Source: Haario, Saksman & Tamminen (1999), section 3.
    """

    dim: AtLeastTwo
    scale: PositiveFloat
    twist: float

    def load(self, rng: Rng, setting: Setting) -> Density:
        s = self.scale
        b = self.twist

        def log_density(theta: Tensor) -> Tensor:
            first = theta[:, 0]
            second = theta[:, 1] + b * (first.square() - s**2)  # z_2
            square = (first / s).square() + second.square() + theta[:, 2:].square().sum(1)
            return -0.5 * square - math.log(s) - 0.5 * theta.shape[1] * LOG_2PI  # [K]

        def exact(n: int, generator: torch.Generator) -> Tensor:
            z = torch.randn(n, 2, generator=generator, device=setting.device, dtype=setting.dtype)
            return torch.stack([s * z[:, 0], z[:, 1] - b * s**2 * (z[:, 0].square() - 1)], 1)

        second_moment = setting.tensor([1.0] * self.dim)
        second_moment[:2] = torch.tensor([s**2, 1 + 2 * b**2 * s**4])
        # central moments of z_1² are 2s⁴ and 60s⁸
        of_second = 3 + 12 * b**2 * s**4 + 60 * b**4 * s**8
        fourth_moment = setting.tensor([3 * s**4, of_second] + [3.0] * (self.dim - 2))
        bent = -b * ((3.2 * s) ** 2 - s**2), b * s**2  # z_2 = 0 at |θ_1| = 3.2 s, and at 0
        return self.make_density(
            setting,
            number_coordinates(self.dim),
            log_density,
            mean=torch.zeros_like(second_moment),
            second_moment=second_moment,
            fourth_moment=fourth_moment,
            box=[(-3.5 * s, 3.5 * s), (min(bent) - 4, max(bent) + 4)]
            + [(-4.0, 4.0)] * (self.dim - 2),
            # of the first two: the others are independent of them
            figures=[marginal_2d(log_density, exact), trace],
        )
