"""A mixture of exponential distributions of a positive parameter, sampled by its logarithm."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from components.contracts.roles import NonEmptyList, Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.problems.density import Density
from components.registry import register


@register("dataset", "mixture_of_exponentials")
class MixtureOfExponentials(NormalStart):
    """Mixture of exponential distributions of z > 0, with y = log z as the coordinate of samplers.

    p(z) = Σ_i π_i λ_i exp(−λ_i z), z = eʸ, log p(y) = log p(z) + y, as |dz/dy| = eʸ. E[zⁿ] = Σ_i
    π_i n!/λ_iⁿ; y [K, 1], z [K, 1].  Samplers start at y ~ N(start_mean, start_sd²).

    Source: Gallego (2021), section 2.3.3."""

    rates: NonEmptyList[PositiveFloat]
    weights: NonEmptyList[PositiveFloat]
    start_mean: float

    @model_validator(mode="after")
    def _check_consistency(self) -> MixtureOfExponentials:
        if len(self.weights) != len(self.rates):
            raise ValueError(
                f"weights: {len(self.weights)} values for {len(self.rates)} rates; give one per rate"
            )
        return self

    def load(self, rng: Rng, setting: Setting) -> Density:
        rates = setting.tensor(self.rates)
        weights = setting.tensor(self.weights)  # [M] each
        weights = weights / weights.sum()
        constants = (weights * rates).log()

        def log_density(y: Tensor) -> Tensor:
            return torch.logsumexp(constants - rates * y.exp(), 1) + y[:, 0]  # [K, 1] -> [K]

        mean = (weights / rates).sum().reshape(1)
        return self.make_density(
            setting,
            ["z"],
            log_density,
            self.start_mean,
            mean=mean,
            second_moment=2 * (weights / rates.square()).sum().reshape(1),
            fourth_moment=24 * (weights / rates**4).sum().reshape(1),
            box=[(0.0, 6 * float(mean))],
            constrain=torch.exp,
        )
