"""A high-dimensional Gaussian with variances of different orders of magnitude and rotated axes."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import NonNegativeInt, PositiveFloat
from torch import Tensor

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart, number_coordinates
from components.maths.cholesky import LOG_2PI
from components.problems.density import Density
from components.registry import register


@register("dataset", "ill_conditioned_gaussian")
class IllConditionedGaussian(NormalStart):
    """Gaussian target with inverse gamma eigenvalues and random axes.

    π(θ) = N(θ | 0, Q Λ Qᵀ), λ_j = 1/g_j, g_j ~ Gamma(``shape``, 1), Q uniform among rotations,
    θ [K, P]; E[θ] = 0, E[θ_j²] = Σ_jj.  ``spectrum_seed`` determines λ and Q, so the target is the
    same for all seeds of a run.

    Source: Hoffman and Sountsov (2022), section 4; Sountsov, Radul & contributors (2020).
    """

    dim: AtLeastTwo
    shape: PositiveFloat
    spectrum_seed: NonNegativeInt

    def load(self, rng: Rng, setting: Setting) -> Density:
        generator = np.random.default_rng(self.spectrum_seed)
        precisions = torch.from_numpy(generator.standard_gamma(self.shape, self.dim))
        normal = torch.from_numpy(generator.standard_normal((self.dim, self.dim)))
        axes = torch.linalg.qr(normal).Q
        variance = setting.place((axes.square() / precisions).sum(1))  # Σ_jj
        whiten = setting.place(axes * precisions.sqrt())  # Q Λ^−½
        log_constant = float(0.5 * precisions.log().sum()) - 0.5 * self.dim * LOG_2PI

        def log_density(theta: Tensor) -> Tensor:
            return log_constant - 0.5 * (theta @ whiten).square().sum(1)  # [K]

        reach = (3.5 * variance.sqrt()).tolist()
        return self.make_density(
            setting,
            number_coordinates(self.dim),
            log_density,
            mean=torch.zeros_like(variance),
            second_moment=variance,
            log_normaliser=0.0,
            box=[(-r, r) for r in reach],
        )
