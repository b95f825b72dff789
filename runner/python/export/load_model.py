"""``load_model`` and what it gives: a fitted model that predicts without its data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.problems import Rows
from components.problems.input_columns import InputColumns
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.supervised import Supervised
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from runner.errors import ConfigError, RunnerWarning
from runner.python.export import questions
from runner.python.export.answer_frames import (
    frame_of_clusters,
    frame_of_forecast,
    frame_of_predictive,
    frame_of_topics,
)
from runner.python.export.model_file import ModelFacts, read_model_file
from runner.python.export.new_rows import (
    is_frame,
    read_documents,
    read_rows,
    to_documents,
    to_inputs,
)
from runner.python.export.rebuild import rebuild
from runner.python.export.restored import RestoredRun

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FittedModel:
    """A fitted model from a file of ``Result.export`` or ``runner export``.

    ``model`` in the examples below is this one.

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

    def __repr__(self) -> str:
        return f"<model {self.facts['experiment']}/{self.facts['run'][:8]}: {self.answers}>"

    @property
    def answers(self) -> questions.Answers:
        """Kind of predictions: labels, forecasts, topics or clusters.

        Example:
            >>> model.answers
            'labels'
        """
        kind = questions.answers_of(self.run.problem, self.run.posterior)
        if kind is None:
            raise ConfigError(f"{self.path}: its posterior predicts nothing for new inputs")
        return kind

    @property
    def columns(self) -> InputColumns:
        """Columns that ``predict`` reads, in their order.

        Example:
            >>> [column.name for column in model.columns.columns]
            ['x1', 'x2', 'x3']
        """
        problem = self.run.problem
        if isinstance(problem, Sequence):
            names = [*problem.regressor_names, *problem.input_names]
            return problem.columns or InputColumns.named(names)
        if isinstance(problem, Corpus):
            return InputColumns.named(list(problem.vocabulary))
        return _columns(problem.splits[0] if isinstance(problem, SupervisedReplicates) else problem)

    def predictive(
        self, x: Any, *, replicate: int | None = None, variant: str | None = None
    ) -> Predictive:
        """Posterior predictive of labels, equal to ``Result.predict``.

        Args:
            x: inputs [B, D], standardised as ``Result.problem.test.x``.
            replicate: one of the replicates that were trained side by side.
            variant: one of the variants that were trained side by side.

        Returns:
            A mixture of normals or of class probabilities, in the units of the problem.

        Raises:
            ConfigError: as ``Result.predict``.

        Example:
            >>> x = [[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]]
            >>> bool((model.predictive(x).probs == result.predict(x).probs).all())
            True
        """
        return questions.predict_labels(self.run, x, replicate, variant, self.facts["experiment"])

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
            rows: path of a CSV or Parquet file, a frame with the model's columns, or numbers
                [B, D] in their order.  For topics a column ``text``, a file *.txt with a document
                a line, or counts in columns named by words.  For a series its regressors and
                inputs at the times ahead, a row for each; None: those of the dataset, or none.
            horizon: times ahead; None: as many as rows, or as the dataset had.
            replicate: one of the replicates that were trained side by side.
            variant: one of the variants that were trained side by side.

        Returns:
            A line for each row: mean, sd and quantiles of real labels and series, class and
            probabilities, cluster and probabilities, or proportions of topics.  Cells are
            missing where a prediction is not finite; a warning counts these rows.

        Raises:
            ConfigError: a column is missing, a cell cannot be used, or no replicate is selected.

        Example:
            >>> frame = model.predict([[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]])
            >>> frame.columns.tolist(), frame["class"].tolist()
            (['class', 'p(0)', 'p(1)'], ['1', '0'])
        """
        is_file = isinstance(rows, str | PathLike)
        where = str(rows) if is_file else "the frame"
        if is_file:
            is_text = self.answers == "topics" and Path(rows).suffix == ".txt"
            rows = read_documents(Path(rows)) if is_text else read_rows(Path(rows), self.columns)
        if self.answers == "forecasts":
            out = frame_of_forecast(self.run, self.columns, rows, horizon, where)
        elif horizon is not None:
            raise ConfigError("predict: horizon is for series; this model predicts rows")
        elif rows is None:
            raise ConfigError("predict: no rows; give a frame, or a CSV or Parquet file")
        else:
            out = self._predict_rows(rows, where, replicate, variant)
            out = out.set_axis(rows.index) if not is_file and is_frame(rows) else out
        if missing := int(out.isna().any(axis=1).sum()):
            warnings.warn(
                f"{missing:,} of {len(out):,} predictions are not finite; their cells are empty",
                RunnerWarning,
                stacklevel=2,
            )
        return out

    def _predict_rows(
        self, rows: Any, where: str, replicate: int | None, variant: str | None
    ) -> pd.DataFrame:
        problem = self.run.problem
        if isinstance(problem, Corpus):
            documents = to_documents(rows, problem.vocabulary, where)
            return frame_of_topics(questions.topic_proportions(self.run, documents))
        if self.answers == "clusters":
            return frame_of_clusters(
                *questions.describe_rows(self.run, to_inputs(rows, self.columns, where))
            )
        split, _, _ = self.run.one(replicate, variant)
        assert isinstance(split, Supervised)
        # a large cell overflows in the dtype of the problem
        x = to_inputs(rows, _columns(split), where).to(split.test.x).nan_to_num()
        predictive = self.predictive(x, replicate=replicate, variant=variant)
        return frame_of_predictive(
            _in_units(predictive, split),
            split.task_names,
            split.classes if split.n_classes > 1 else [],
        )


def _columns(problem: Any) -> InputColumns:
    """Columns of a problem; x1 … xD where the dataset named none."""
    if problem.columns is not None:
        columns: InputColumns = problem.columns
        return columns
    n = problem.train.x[0].numel() if isinstance(problem.train, Rows) else problem.n_inputs
    return InputColumns.numbered(n)


def _in_units(predictive: Predictive, problem: Supervised) -> Predictive:
    """Real labels in their own units."""
    if problem.y_mean is None or problem.y_std is None:
        return predictive
    assert isinstance(predictive, GaussianMixture)
    return predictive.rescale(problem.y_mean, problem.y_std)


def load_model(path: str | PathLike[str], *, device: str = "cpu") -> FittedModel:
    """Load a fitted model from its file; neither its data nor its record are needed.

    Nothing in the file is run: it holds no code and no pickle, and plug-ins that it names must
    have been imported by the caller.

    Args:
        path: file of ``Result.export`` or ``runner export``.
        device: cpu, cuda or cuda:1; draws of predictions differ between kinds of devices.

    Returns:
        The model.

    Raises:
        ConfigError: there is no such file, it is no model, it is damaged or of another format,
            or names plug-ins that are not imported.

    Example:
        >>> from runner import load_model, run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> load_model(result.export("model.zip")).facts["data"]
        'binary_simulation'
    """
    file = Path(path)
    stored = read_model_file(file)
    return FittedModel(file, stored.facts, stored.card, rebuild(stored, file, device))
