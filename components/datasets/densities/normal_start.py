"""Base class of densities with samplers that start at draws from a normal distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from pydantic import BaseModel, FiniteFloat, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.figures.samples.trace import trace
from components.maths.exponential.standard_draws import standard_normal
from components.metrics.reference_moments import ReferenceMoments
from components.problems.density import Density


class NormalStart(Dataset[Density]):
    """A density with starts θ ~ N(m, start_sd² I)."""

    kind = "density"
    vectorised = True
    start_sd: PositiveFloat

    def prior_sampler(
        self, dim: int, setting: Setting, mean: Tensor | float
    ) -> Callable[[int, torch.Generator], Tensor]:
        """Sampler of the starts, n -> [n, P], P = ``dim``; m = ``mean`` is a number or [P]."""
        like = setting.tensor([])

        def sample_prior(n: int, generator: torch.Generator) -> Tensor:
            return mean + self.start_sd * standard_normal((n, dim), generator, like)

        return sample_prior

    def start_box(self, begin: Tensor) -> list[tuple[float, float]]:
        """Range of each coordinate in figures: four standard deviations of the starts around
        m [P]."""
        reach = 4 * self.start_sd
        return [(float(b) - reach, float(b) + reach) for b in begin]

    def make_density(
        self,
        setting: Setting,
        names: list[str],
        log_density: Callable[[Tensor], Tensor],
        start: Tensor | float = 0.0,
        **known: Any,
    ) -> Density:
        """The density over θ [K, P] with starts around ``start`` and further known fields of
        ``Density``."""
        return Density(
            name=self.identity(setting.data_dir, setting.offline),
            names=names,
            log_density=log_density,
            sample_prior=self.prior_sampler(known.get("free", len(names)), setting, start),
            replicates=setting.replicates,
            **{"mean": None, "second_moment": None, "figures": [trace]} | known,
        )


def number_coordinates(n: int) -> list[str]:
    """x1, x2, …: names of n coordinates."""
    return [f"x{j}" for j in range(1, n + 1)]


class KnownMoments(BaseModel):
    """Optional user-given moments of the parameters, the reference for scoring estimates.

    Moments estimated from draws with an effective sample size ``ess`` have the standard errors
    √(Var[f]/ess) of f = θ and θ², the latter as for a Gaussian parameter.
    """

    mean: list[FiniteFloat] | None
    sd: list[PositiveFloat] | None
    ess: PositiveFloat | None

    @model_validator(mode="after")
    def _check_moments(self) -> Self:
        if (self.mean is None) != (self.sd is None):
            raise ValueError("mean, sd: only one of the two is set; set both or neither")
        return self

    def moments(self, setting: Setting) -> dict[str, Tensor]:
        """First and second moments [P'] with their errors as fields of ``Density``; empty if not
        given.
        """
        if self.mean is None or self.sd is None:
            return {}
        mean = setting.tensor(self.mean)
        sd = setting.tensor(self.sd)
        moments = ReferenceMoments(mean, mean.square() + sd.square(), None, None, None)
        fields = {"mean": mean, "second_moment": moments.second_moment}
        if self.ess is None:
            return fields
        errors = (moments.variances() / self.ess).sqrt()
        return fields | {"mean_error": errors[0], "second_moment_error": errors[1]}
