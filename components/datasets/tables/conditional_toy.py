"""What the toy regressions share whose labels have another law at every input."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.problems import Kind, Target
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.tables.raw_units import RawUnits, standardised
from components.figures.supervised.calibration import calibration
from components.figures.supervised.predictive_samples import predictive_samples


class ConditionalToy(Dataset[RawUnits]):
    """x uniform on [−reach, reach], y ~ ``law``; both standardised by the training rows, scores in the units of y."""

    kind: ClassVar[Kind] = "supervised"
    target: ClassVar[Target | None] = "real"
    reach: ClassVar[float]
    n_train: Annotated[int, Field(ge=2)]
    n_test: PositiveInt
    batch_size: PositiveInt | None

    @staticmethod
    def law(x: Tensor, generator: torch.Generator) -> Tensor:
        """y ~ p(y|x) [B] of inputs x [B], in float64."""
        raise TypeError("a toy regression has a law")

    def load(self, rng: Rng, setting: Setting) -> RawUnits:
        n = self.n_train
        u = torch.rand(n + self.n_test, generator=rng.data, dtype=torch.float64, device=rng.data.device).cpu()
        x = self.reach * (2 * u - 1)
        y = self.law(x, rng.data)
        kept, scored = slice(0, n), slice(n, None)
        return standardised(
            self.name,
            x[:, None],
            y[:, None],
            kept,
            scored,
            self.batch_size,
            "y",
            [predictive_samples, calibration],
            setting,
        )
