"""A univariate mixture of Gaussians."""

from __future__ import annotations

from pydantic import FiniteFloat, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.maths.cholesky import LOG_2PI
from components.problems.density import Density
from components.registry import register

REACH = 8.0  # standard deviations from the outer components to the edge of the box


@register("dataset", "mixture_of_gaussians_1d")
class MixtureOfGaussians1D(NormalStart):
    """Mixture of Gaussians of one variable, by default a large mode and a smaller one.

    π(θ) = Σ_k w_k N(θ | m_k, s_k²), θ [K, 1]; E[θ] = Σ_k w_k m_k,
    E[θ²] = Σ_k w_k (m_k² + s_k²).  ``weights`` are normalised.

    Source: Minka (2005), Figure 1; Rodríguez Santana and Hernández-Lobato (2020), Figure 1.
    """

    weights: list[PositiveFloat]
    means: list[FiniteFloat]
    sds: list[PositiveFloat]

    @model_validator(mode="after")
    def _check_consistency(self) -> MixtureOfGaussians1D:
        sizes = {key: len(dict(self)[key]) for key in ("weights", "means", "sds")}
        if len(set(sizes.values())) > 1 or not self.weights:
            counts = ", ".join(f"{n} {key}" for key, n in sizes.items())
            raise ValueError(f"weights, means, sds: {counts}; give one of each per component")
        return self

    def load(self, rng: Rng, setting: Setting) -> Density:
        w, m, s = map(setting.tensor, (self.weights, self.means, self.sds))
        w = w / w.sum()
        log_constant = w.log() - s.log() - 0.5 * LOG_2PI  # [M]

        def log_density(theta: Tensor) -> Tensor:
            return (log_constant - 0.5 * ((theta - m) / s).square()).logsumexp(1)  # [K]

        return self.make_density(
            setting,
            ["x"],
            log_density,
            (w * m).sum(),
            mean=(w * m).sum()[None],
            second_moment=(w * (m.square() + s.square())).sum()[None],
            fourth_moment=(w * (m**4 + 6 * (m * s).square() + 3 * s**4)).sum()[None],
            log_normaliser=0.0,
            box=[(float((m - REACH * s).min()), float((m + REACH * s).max()))],
        )
