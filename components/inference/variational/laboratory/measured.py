"""A posterior, and measurements of the gradients with which it was fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from components.contracts.checks import Check, NamedScores, Scores
from components.contracts.posteriors import Analyses, BoundsLikelihood, Predicts, WritesFiles
from components.contracts.predictive import Predictive
from components.contracts.problems import RowBatch
from components.metrics import limits
from components.posteriors.tables import write_tables

if TYPE_CHECKING:
    from components.figures.style import Figures

# noise and gradient: their values at two minibatches
Dependence = dict[str, list[list[float]]]


def _parts(name: str) -> tuple[str, str | None, str | None]:
    """Split a score's name into score, gradient and step.

    The gradient, or both gradient and step, may be absent.
    """
    score, *rest = name.split("/")
    return score, rest[0] if len(rest) > 1 else None, rest[-1] if rest else None


@dataclass
class Findings:
    """Findings at the freezes so far."""

    # by name, "trace_ratio/<gradient>/<step>"
    scores: dict[str, float] = field(default_factory=dict)
    # trace ratios during learning, by "<gradient>/<step>/<iteration>"
    curves: dict[str, float] = field(default_factory=dict)
    # quantiles of |δ^CV/E[a_VarGrad]| by step
    corrections: dict[str, list[float]] = field(default_factory=dict)
    # noise and gradient at two minibatches, by step
    dependence: dict[str, Dependence] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """Scores, their figures, and a table of all scores."""

    labels: list[str]  # labels of the gradients; the first is the reference
    unbiased: list[bool]  # for each, True if its mean is the gradient of the ELBO
    at: list[int]
    iterations: list[int]
    findings: Findings
    inner: object

    def scores(self) -> NamedScores:
        inner_scores = self.inner.scores() if isinstance(self.inner, Analyses) else {}
        return {**inner_scores, **self.findings.scores}

    def check_bias(self, scores: Scores) -> Check:
        """Check that estimators marked unbiased agree in mean with the first estimator."""
        name = "gradients marked unbiased have the same mean"
        first = self.labels[0]
        if not self.unbiased[0]:
            detail = f"the first, {first}, is marked biased; list an unbiased one first"
            return Check(name, None, detail)
        marked = zip(self.labels[1:], self.unbiased[1:], strict=True)
        p = [
            (float(value), f"{label} after {t} steps")
            for label, unbiased in marked
            for t in self.at
            if unbiased and f"bias_p/{label}/{t}" in scores
            for value in np.atleast_1d(scores[f"bias_p/{label}/{t}"])
        ]
        if not p:
            return Check(name, None, "no other estimator was measured")
        smallest, worst = min(p)
        corrected = min(1.0, smallest * len(p))
        detail = f"smallest p {corrected:.2g}, corrected for {len(p)}: {worst}"
        return Check(name, corrected > limits.BIAS_P, detail)

    def figures(self) -> Figures:
        from components.figures.variational.gradient_variance import (
            correction_spread,
            gradient_variance,
        )
        from components.figures.variational.minibatch_dependence import minibatch_dependence

        inner_figures = self.inner.figures() if isinstance(self.inner, Analyses) else {}
        own_figures = gradient_variance(
            self.labels,
            self.at,
            self.iterations,
            self.findings.scores,
            self.findings.curves,
        )
        own_figures |= correction_spread(self.findings.corrections)
        return inner_figures | own_figures | minibatch_dependence(self.findings.dependence)

    def artefacts(self, folder: Path) -> list[Path]:
        """``tables/gradient_variance.csv``: score, gradient, step, iteration (empty after all
        iterations) and value."""
        import pandas as pd

        paths = self.inner.artefacts(folder) if isinstance(self.inner, WritesFiles) else []
        rows = [(*_parts(name), None, value) for name, value in self.findings.scores.items()]
        learning = [
            ("trace_ratio", *name.split("/"), value) for name, value in self.findings.curves.items()
        ]
        columns = ["score", "gradient", "step", "iteration", "value"]
        table = pd.DataFrame([*rows, *learning], columns=columns)
        return [*paths, *write_tables(folder, {"gradient_variance": table})]


@dataclass(frozen=True)
class MeasuredPredictions(Measured):
    """Measured posterior of a model with labels."""

    inner: Predicts

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        return self.inner.predict(x, generator)


@dataclass(frozen=True)
class MeasuredBound(Measured):
    """Measured posterior of a model without labels."""

    inner: BoundsLikelihood[RowBatch]

    def row_log_weights(
        self, batch: RowBatch, n_samples: int, generator: torch.Generator
    ) -> Tensor:
        return self.inner.row_log_weights(batch, n_samples, generator)
