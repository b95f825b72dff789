"""Problems of a user's table, with the interpretation of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from components.contracts.checks import NamedScores
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
    # scale of the inputs in units of each column: 1, or a standard deviation [D]
    input_scale: Tensor | None = None

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about

    def score(self, posterior: Predicts, rng: Rng) -> NamedScores:
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

        It is 1 for raw labels and for classes, because log odds are unitless.
        """
        return 1.0 if self.y_std is None else float(self.y_std[0])


@dataclass
class UnlabelledTable(Unlabelled):
    """Rows without labels."""

    about: dict[str, str] = field(default_factory=dict)
    # line numbers of the training rows, then of the held-out rows, N + B
    lines: list[int] = field(default_factory=list)

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about

    def tables(self, posterior: object, rng: Rng) -> dict[str, pd.DataFrame]:
        """Imputed gaps by line and column of the file, in the units of the columns."""
        tables = super().tables(posterior, rng)
        columns = self.columns
        if (
            "imputed" in tables
            and columns is not None
            and columns.scale is not None
            and columns.mean is not None
        ):
            frame = tables["imputed"]
            places = frame["column"].to_numpy() - 1
            scale = columns.scale.numpy()[places]
            frame["mean"] = frame["mean"] * scale + columns.mean.numpy()[places]
            frame["sd"] *= scale
            frame["column"] = [columns.input_names[j] for j in places]
            if len(self.lines) == self.n + self.test.n_rows:  # the whole table
                frame["row"] = [self.lines[row - 1] for row in frame["row"]]
                frame.rename(columns={"row": "line"}, inplace=True)
        return tables
