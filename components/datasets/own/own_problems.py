"""Problems of a table of the user's own, which say what its columns were taken for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.streams import Rng
from components.datasets.own.column_effects import effect_table, per_unit_scores
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class OwnTable(Supervised):
    """Rows with labels."""

    about: dict[str, str] = field(default_factory=dict)
    input_names: list[str] = field(default_factory=list)
    # units of each column that inputs are counted in: 1, or a standard deviation [D]
    input_scale: Tensor | None = None

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about

    def score(self, posterior: Predicts, rng: Rng) -> dict[str, Tensor | float]:
        """Scores of ``Supervised`` and, for linear models, the effect of one unit of each
        column."""
        out = super().score(posterior, rng)
        if self.input_scale is None or self.n_tasks > 1:
            return out
        return out | per_unit_scores(
            posterior, self.input_names, self.classes, self.input_scale, self._label_scale
        )

    def tables(self, posterior: Predicts, rng: Rng) -> dict[str, pd.DataFrame]:
        if self.input_scale is None or self.n_tasks > 1:
            return {}
        return effect_table(
            posterior, self.input_names, self.classes, self.input_scale, self._label_scale
        )

    @property
    def _label_scale(self) -> float:
        """Label units per unit of the model's labels.

        It is 1 for raw labels and for classes, because log odds have no unit.
        """
        return 1.0 if self.y_std is None else float(self.y_std[0])


@dataclass
class UnlabelledTable(Unlabelled):
    """Rows without labels."""

    about: dict[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about
