"""Input example and predictions of a fitted model in MLflow."""

from __future__ import annotations

from typing import Any

import pandas as pd

from components.problems.date_columns import EPOCH
from components.problems.input_columns import InputColumn
from runner.python.export.answers import TopicAnswers
from runner.python.export.load_model import FittedModel
from runner.python.export.new_rows import TEXT
from runner.python.export.series_answers import SeriesAnswers

ARTIFACT = "model"  # name of the model in its run and of its file
HORIZON = "horizon"  # column for series without regressors: number of future times, in one row
EXAMPLE_HORIZON = 3


def make_example(model: FittedModel) -> pd.DataFrame:
    """An artificial row of zeros and first categories."""
    asked = model.asked
    names = [column.name for column in model.columns.columns]
    if isinstance(asked, TopicAnswers):
        is_text = asked.problem.image_shape is None
        return pd.DataFrame(
            {TEXT: [" ".join(names[:3])]} if is_text else {name: [1.0] for name in names}
        )
    if not names:
        return pd.DataFrame({HORIZON: [EXAMPLE_HORIZON]})
    cells = {column.name: [_typical(column)] for column in model.columns.columns}
    if model.columns.time is not None and isinstance(asked, SeriesAnswers):
        cells[model.columns.time.name] = asked.list_dates(1)
    return pd.DataFrame(cells)


def _typical(column: InputColumn) -> Any:
    """Example cell of a column: its first category, a date, a truth value or a number."""
    if column.levels:
        return column.levels[0]
    if column.date_format:
        return EPOCH.strftime(column.date_format)
    return False if column.type == "true or false" else 0.0


def predict_rows(model: FittedModel, rows: pd.DataFrame) -> pd.DataFrame:
    """Predictions for rows, or for ``horizon`` future times of a series without regressors."""
    if model.answers == "forecasts" and HORIZON in rows:
        return model.predict(horizon=int(rows[HORIZON].iloc[0]))
    return model.predict(rows)
