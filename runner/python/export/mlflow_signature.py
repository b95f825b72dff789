"""Signature and input example of a fitted model in MLflow, by its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from components.problems.date_columns import EPOCH
from components.problems.input_columns import InputColumn
from components.series.calendars.dates_ahead import dates_ahead
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from runner.python.export.load_model import FittedModel
from runner.python.export.new_rows import TEXT

if TYPE_CHECKING:
    import pandas as pd

ARTIFACT = "model"  # name of the model in its run, and of its file
HORIZON = "horizon"  # column of a series without regressors: times ahead, in one row
EXAMPLE_HORIZON = 3


def make_example(model: FittedModel) -> pd.DataFrame:
    """A row of zeros and first texts: no row of the data."""
    import pandas as pd

    columns = model.columns
    problem = model.run.problem
    if isinstance(problem, Corpus) and problem.image_shape is None:
        return pd.DataFrame({TEXT: [" ".join(list(problem.vocabulary)[:3])]})
    if isinstance(problem, Corpus):
        return pd.DataFrame({column.name: [1.0] for column in columns.columns})
    if not columns.columns:
        return pd.DataFrame({HORIZON: [EXAMPLE_HORIZON]})
    cells = {column.name: [_typical(column)] for column in columns.columns}
    if columns.time is not None and isinstance(problem, Sequence):
        cells[columns.time.name] = dates_ahead(problem.dates, problem.observations.shape[1], 1)
    return pd.DataFrame(cells)


def _typical(column: InputColumn) -> Any:
    """A cell of a column: its first text, a date, a truth value or a number."""
    if column.levels:
        return column.levels[0]
    if column.date_format:
        return EPOCH.strftime(column.date_format)
    return False if column.type == "true or false" else 0.0


def make_signature(model: FittedModel, example: pd.DataFrame) -> Any:
    """MLflow's signature: the columns of the example and of its prediction."""
    from mlflow.models import infer_signature

    first = example[HORIZON].iloc[0] if HORIZON in example and not model.columns.columns else None
    predicted = model.predict(example) if first is None else model.predict(horizon=int(first))
    return infer_signature(example, predicted)
