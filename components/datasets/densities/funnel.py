"""Neal's funnel: a scale and scaled variables, for which no single step size is suitable."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.figures.samples.marginal_2d import marginal_2d
from components.figures.samples.trace import trace
from components.maths.cholesky import LOG_2PI
from components.problems.density import Density
from components.registry import register


@register("dataset", "funnel")
class Funnel(NormalStart):
    """Neal's funnel, the joint density of a log variance (or log standard deviation) and of
    variables with this variance.

    v ~ N(0, s²), x_i | v ~ N(0, e^v), i = 1 … P − 1; E[v] = E[x_i] = 0, E[v²] = s², E[x_i²] =
    exp(s²/2), which is dominated by rare draws of large v, so its estimates need very long chains.
    With ``spread: sd`` x_i | v ~ N(0, e^2v), E[x_i²] = exp(2s²).

    Source: Neal (2003), section 8; Gallego (2021), section 2.4.2 (sd, as its Figure 2.7 shows)."""

    dim: AtLeastTwo
    scale: PositiveFloat
    spread: Literal["sd", "variance"]

    def load(self, rng: Rng, setting: Setting) -> Density:
        s = self.scale
        a = 2.0 if self.spread == "sd" else 1.0  # variance e^{a v}

        def log_density(theta: Tensor) -> Tensor:
            v = theta[:, 0]
            x = theta[:, 1:]
            log_p_v = -0.5 * (v / s).square() - math.log(s)
            return log_p_v - 0.5 * (
                x.square().sum(1) * (-a * v).exp() + a * x.shape[1] * v + theta.shape[1] * LOG_2PI
            )  # [K]

        def exact(n: int, generator: torch.Generator) -> Tensor:
            z = torch.randn(n, 2, generator=generator, device=setting.device, dtype=setting.dtype)
            return torch.stack([s * z[:, 0], (0.5 * a * s * z[:, 0]).exp() * z[:, 1]], 1)

        def per_parameter(of_v: float, of_x: float) -> Tensor:
            return setting.tensor([of_v] + [of_x] * (self.dim - 1))

        # three standard deviations of x for v two standard deviations above 0
        reach = 3 * math.exp(a * s)
        return self.make_density(
            setting,
            ["v", *(f"x{i}" for i in range(1, self.dim))],
            log_density,
            mean=per_parameter(0.0, 0.0),
            second_moment=per_parameter(s**2, math.exp(a**2 * s**2 / 2)),
            fourth_moment=per_parameter(3 * s**4, 3 * math.exp(2 * a**2 * s**2)),
            log_normaliser=0.0,
            box=[(-3.5 * s, 3.5 * s)] + [(-reach, reach)] * (self.dim - 1),
            # (v, x_1): the two-dimensional funnel
            figures=[marginal_2d(log_density, exact), trace],
        )
