"""Equally weighted Gaussians at random centres in several dimensions, a multimodal target."""

from __future__ import annotations

import math

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart, number_coordinates
from components.maths.cholesky import LOG_2PI
from components.problems.density import Density
from components.registry import register


@register("dataset", "mixture_of_gaussians")
class MixtureOfGaussians(NormalStart):
    """Equally weighted isotropic Gaussians with random centres.

    π(θ) = M⁻¹ Σ_k N(θ | m_k, v I), m_k ~ N(0, spread² I), θ [K, P]; E[θ_j] = mean of m_kj,
    E[θ_j²] = mean of m_kj² + v.  Two centres are about spread √(2P) apart.  ``centre_seed``
    determines the centres, so the target is the same for all seeds of a run.

    Source: the two-dimensional mixture of Gallego (2021), section 2.3.3, extended to P dimensions.
    """

    dim: PositiveInt
    modes: PositiveInt
    spread: PositiveFloat
    variance: PositiveFloat
    centre_seed: NonNegativeInt

    def load(self, rng: Rng, setting: Setting) -> Density:
        generator = torch.Generator().manual_seed(self.centre_seed)
        z = torch.randn(self.modes, self.dim, generator=generator, dtype=torch.float64)
        centres = setting.place(self.spread * z)  # [M, P]
        v = self.variance
        log_constant = -math.log(self.modes) - 0.5 * self.dim * (LOG_2PI + math.log(v))

        def log_density(theta: Tensor) -> Tensor:
            square = (theta.unsqueeze(1) - centres).square().sum(-1)  # [K, M]
            return log_constant + torch.logsumexp(-square / (2 * v), 1)  # [K]

        low = (centres.amin(0) - 5 * v**0.5).tolist()
        high = (centres.amax(0) + 5 * v**0.5).tolist()
        squares = centres.square()
        return self.make_density(
            setting,
            number_coordinates(self.dim),
            log_density,
            mean=centres.mean(0),
            second_moment=squares.mean(0) + v,
            fourth_moment=(squares.square() + 6 * v * squares).mean(0) + 3 * v**2,
            log_normaliser=0.0,
            box=list(zip(low, high, strict=True)),
        )
