"""``load_model`` and its result, a fitted model that predicts without its data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from components.contracts.predictive import Predictive
from components.problems.input_columns import InputColumns
from runner.errors import ConfigError, RunnerWarning
from runner.python.export.answers import Answers, answers_of, predict_labels
from runner.python.export.model_file import ModelFacts, read_model_file
from runner.python.export.new_rows import read_documents, read_rows
from runner.python.export.restored import RestoredRun, rebuild
from runner.python.export.series_answers import SeriesAnswers


@dataclass(frozen=True)
class FittedModel:
    """A fitted model from a file written by ``Result.export`` or ``runner export``.

    The examples below use this ``model``.

    Example:
        >>> from runner import load_model, run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> model = load_model(result.export("model.zip"))
        >>> model
        <model cavi_probit/f6a7f556: labels>
    """

    path: Path
    facts: ModelFacts  # run, experiment, data, versions, …
    card: str  # Markdown
    run: RestoredRun
    asked: Answers  # the predictor

    def __repr__(self) -> str:
        return f"<model {self.facts['experiment']}/{self.facts['run'][:8]}: {self.answers}>"

    @property
    def answers(self) -> Literal["labels", "forecasts", "topics", "clusters"]:
        """Kind of predictions: labels, forecasts, topics or clusters.

        Example:
            >>> model.answers
            'labels'
        """
        return self.asked.kind

    @property
    def columns(self) -> InputColumns:
        """Columns that ``predict`` reads, in order.

        Example:
            >>> [column.name for column in model.columns.columns]
            ['x1', 'x2', 'x3']
        """
        return self.asked.columns

    def predictive(
        self, x: Any, *, replicate: int | None = None, variant: str | None = None
    ) -> Predictive:
        """Posterior predictive of labels, equal to ``Result.predict``.

        Args:
            x: inputs [B, D], standardised as ``Result.problem.test.x``.
            replicate: one of several replicates trained side by side.
            variant: one of several variants trained side by side.

        Returns:
            A mixture of normals or of class probabilities, in the units of the problem.

        Raises:
            ConfigError: see ``Result.predict``.

        Example:
            >>> x = [[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]]
            >>> bool((model.predictive(x).probs == result.predict(x).probs).all())
            True
        """
        return predict_labels(self.run, x, replicate, variant, self.facts["experiment"])

    def predict(
        self,
        rows: Any = None,
        *,
        horizon: int | None = None,
        replicate: int | None = None,
        variant: str | None = None,
    ) -> pd.DataFrame:
        """Predictions for rows in the units of the data.

        Args:
            rows: path of a CSV or Parquet file, a frame with the model's columns, or numbers [B,
                D] in their order.  For topics: a column ``text``, a file *.txt with one document
                per line, or counts in columns named by words.  For a series: its regressors and
                inputs at future times, one row each; if None, they are taken from the dataset, if
                it has them.
            horizon: number of future times; by default the number of rows, or the dataset's
                horizon.
            replicate: one of several replicates trained side by side.
            variant: one of several variants trained side by side.

        Returns:
            One row per input: mean, sd and quantiles of real labels and series, class and
            probabilities, cluster and probabilities, or proportions of topics.  Cells are
            missing where a prediction is not finite; a warning counts these rows.

        Raises:
            ConfigError: a column is missing, a cell is invalid, or a replicate must be selected.

        Example:
            >>> frame = model.predict([[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]])
            >>> frame.columns.tolist(), frame["class"].tolist()
            (['class', 'p(0)', 'p(1)'], ['1', '0'])
        """
        asked = self.asked
        is_file = isinstance(rows, str | PathLike)
        where = str(rows) if is_file else "the frame"
        if is_file:
            is_text = asked.kind == "topics" and Path(rows).suffix == ".txt"
            rows = read_documents(Path(rows)) if is_text else read_rows(Path(rows), asked.columns)
        if isinstance(asked, SeriesAnswers):
            out = asked.frame(rows, where, horizon)
        elif horizon is not None:
            raise ConfigError("predict: horizon applies only to series; give rows to this model")
        elif rows is None:
            raise ConfigError("predict: rows are missing; give a frame, or a CSV or Parquet file")
        else:
            out = asked.frame(rows, where, replicate, variant)
            if isinstance(rows, pd.DataFrame) and not is_file:
                out = out.set_axis(rows.index)
        if missing := int(out.isna().any(axis=1).sum()):
            warnings.warn(
                f"{missing:,} of {len(out):,} predictions are not finite; their cells are empty",
                RunnerWarning,
                stacklevel=2,
            )
        return out


def load_model(path: str | PathLike[str], *, device: str = "cpu") -> FittedModel:
    """Load a fitted model from its file, without its data or its record.

    The file has neither code nor pickle, and the caller must have imported the plug-ins that it
    names.

    Args:
        path: file written by ``Result.export`` or ``runner export``.
        device: cpu, cuda or cuda:1; draws of predictions differ between types of devices.

    Returns:
        The model.

    Raises:
        ConfigError: the file does not exist, is not a model, is damaged, has an unsupported
            format, or names plug-ins that are not imported.

    Example:
        >>> from runner import load_model, run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> load_model(result.export("model.zip")).facts["data"]
        'binary_simulation'
    """
    file = Path(path)
    stored = read_model_file(file)
    run = rebuild(stored, file, device)
    if (asked := answers_of(run)) is None:
        raise ConfigError(f"{file}: the posterior makes no predictions for new inputs")
    return FittedModel(file, stored.facts, stored.card, run, asked)
