"""Zeros and ones in turn."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveInt

from components.contracts.problems import Kind
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.forecasting import Classes, Forecasting, Origin, split
from components.series.sequence import Sequence


@register("dataset", "alternating")
class Alternating(Dataset[Forecasting]):
    """A series of alternating values 0, 1, 0, 1, …, for models that may assume C classes.

    y [1, T, 1]; the last ``n_ahead`` of the ``n_steps`` times are to be forecast.

    Raises:
        ConfigMismatchError: nothing is left to learn from.

    Source: Gallego (2021), section 2.4.2, "Prediction with an HMM".
    """

    kind: ClassVar[Kind] = "sequence"
    traits: ClassVar[frozenset[str]] = frozenset({"class_series", "unknown_states"})
    simulates: ClassVar[frozenset[str]] = frozenset({"categorical_series"})

    n_steps: PositiveInt
    n_ahead: PositiveInt
    origin: Origin
    classes: Annotated[int, Field(ge=2)]

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        y = (torch.arange(self.n_steps, device=setting.device) % 2).to(setting.dtype).view(1, -1, 1)
        sequence = Sequence(
            name=self.name,
            states=None,
            observations=y,
            system=Classes(self.classes),
            state_names=["class"],
        )
        return split(sequence, self.n_ahead, self.origin)
