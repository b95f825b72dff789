"""Base class of densities whose samplers start at draws of a normal."""

from __future__ import annotations

from collections.abc import Callable

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.problems.density import Density


class NormalStart(Dataset[Density]):
    """A density with starts θ ~ N(m, start_sd² I)."""

    kind = "density"
    vectorised = True
    start_sd: PositiveFloat

    def prior_sampler(
        self, dim: int, setting: Setting, mean: Tensor | float = 0.0
    ) -> Callable[[int, torch.Generator], Tensor]:
        """Draws of the starts, n [K, P], P = ``dim``; m = ``mean`` is a number or [P]."""

        def sample_prior(n: int, generator: torch.Generator) -> Tensor:
            z = torch.randn(
                n, dim, generator=generator, device=generator.device, dtype=setting.dtype
            )
            return mean + self.start_sd * z.to(setting.device)

        return sample_prior
