"""A posterior, and what was measured of the gradients that it was fitted by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.posteriors import Analyses, BoundsLikelihood, Predicts, WritesFiles
from components.contracts.predictive import Predictive
from components.contracts.problems import RowBatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Measured:
    """Scores by name, "trace_ratio/<gradient>/<step>", figures of them, and a table with all."""

    labels: list[str]  # of the gradients, the first of which the others are measured against
    at: list[int]
    iterations: list[int]
    found: dict[str, float]
    curves: dict[str, float]  # trace ratios while estimators were learning, by "<gradient>/<step>/<iteration>"
    inner: object

    def scores(self) -> dict[str, Tensor | float]:
        own = self.inner.scores() if isinstance(self.inner, Analyses) else {}
        return {**own, **self.found}

    def figures(self) -> dict[str, Figure]:
        from components.figures.variational.gradient_variance import gradient_variance

        own = self.inner.figures() if isinstance(self.inner, Analyses) else {}
        return own | gradient_variance(self)

    def artefacts(self, folder: Path) -> list[Path]:
        """``tables/gradient_variance.csv``: score, gradient, step, iteration (none where all was learnt) and value."""
        import pandas as pd

        written = self.inner.artefacts(folder) if isinstance(self.inner, WritesFiles) else []
        found = [(*name.split("/"), None, value) for name, value in self.found.items()]
        learning = [("trace_ratio", *name.split("/"), value) for name, value in self.curves.items()]
        path = folder / "tables" / "gradient_variance.csv"
        path.parent.mkdir(exist_ok=True)
        columns = ["score", "gradient", "step", "iteration", "value"]
        pd.DataFrame([*found, *learning], columns=columns).to_csv(path, index=False)
        return [*written, path]


@dataclass(frozen=True)
class MeasuredPredictions(Measured):
    """Of a model with labels."""

    inner: Predicts

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        return self.inner.predict(x, generator)


@dataclass(frozen=True)
class MeasuredBound(Measured):
    """Of a model of rows alone."""

    inner: BoundsLikelihood[RowBatch]

    def log_weights(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        return self.inner.log_weights(batch, n_samples, generator)
