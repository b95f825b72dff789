"""Predictives and forecasts as frames, in the units of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from components.contracts.capabilities import CategoricalSeries
from components.contracts.predictive import (
    Categorical,
    Predictive,
    components_of,
    is_finite,
    top_class,
)
from components.contracts.sequences import FutureCovariates
from components.errors import ConfigMismatchError
from components.problems.input_columns import InputColumns
from components.series.calendars.dates_ahead import dates_ahead
from components.series.forecasting import Forecasting
from components.series.sequence import Sequence as Series
from runner.errors import ConfigError
from runner.python.export import questions
from runner.python.export.new_rows import check_times, to_inputs
from runner.python.export.restored import RestoredRun

if TYPE_CHECKING:
    import pandas as pd

MOST_AHEAD = 10_000  # times of a forecast
LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)  # of the quantiles


def frame_of_predictive(
    predictive: Predictive, tasks: Sequence[str], classes: Sequence[str]
) -> pd.DataFrame:
    """A line for each input: mean, sd and quantiles, or the class and the probabilities; of several
    tasks each column is named ``task: column``.

    Cells are empty (NaN, or None for a class) where a prediction is not finite."""
    import pandas as pd

    n_tasks = components_of(predictive).shape[2]
    names = [str(name) for name in tasks] or [f"y{t + 1}" for t in range(n_tasks)]
    columns: dict[str, object] = {}
    missing = ~is_finite(predictive)  # [B, T]
    for name, value in _columns(predictive, classes).items():
        for t in range(n_tasks):
            key = name if n_tasks == 1 else f"{names[t]}: {name}"
            if name == "class":
                columns[key] = [classes[k] if k >= 0 else None for k in value[:, t].tolist()]
            else:
                columns[key] = value[:, t].masked_fill(missing[:, t], torch.nan).tolist()
    keys = list(columns)
    by_task = [key for t in range(n_tasks) for key in keys[t::n_tasks]]
    return pd.DataFrame({key: columns[key] for key in by_task})


def _columns(predictive: Predictive, classes: Sequence[str]) -> dict[str, Tensor]:
    """Columns [B, T] by name."""
    if isinstance(predictive, Categorical):
        probs = predictive.probs
        each = {f"p({name})": probs[..., k] for k, name in enumerate(classes)}
        return {"class": predictive.guess, **each}
    quantiles = {f"q{level:g}": predictive.quantile(level) for level in LEVELS}
    return {"mean": predictive.mean, "sd": predictive.variance.sqrt(), **quantiles}


def frame_of_clusters(log_density: Tensor, clusters: Tensor | None) -> pd.DataFrame:
    """A line for each row: the cluster, counted from 1, its probabilities and log p(x)."""
    import pandas as pd

    out: dict[str, object] = {}
    if clusters is not None:
        numbers = [k or None for k in (top_class(clusters) + 1).tolist()]
        out["cluster"] = numbers if all(numbers) else pd.array(numbers, dtype="Int64")
        out |= {f"p({k + 1})": clusters[:, k].tolist() for k in range(clusters.shape[1])}
    return pd.DataFrame({**out, "log_density": log_density.tolist()})


def frame_of_topics(proportions: Tensor) -> pd.DataFrame:
    """A line for each document: the proportions of its topics."""
    import pandas as pd

    names = [f"topic {k + 1}" for k in range(proportions.shape[1])]
    return pd.DataFrame(proportions.cpu().tolist(), columns=names)


def frame_of_forecast(
    run: RestoredRun, columns: InputColumns, rows: Any, horizon: int | None, where: str
) -> pd.DataFrame:
    """A line for each time ahead; ``columns``: regressors and inputs, which ``rows`` has.

    Raises:
        ConfigError: the horizon is unknown, or regressors at the times ahead are.
    """
    problem = run.problem
    assert isinstance(problem, Series)
    covariates = columns.columns
    ahead = problem.beyond if isinstance(problem, Forecasting) else None
    known = problem.future.shape[1] if isinstance(problem, Forecasting) else None
    if rows is not None:
        ahead = _read_ahead(problem, columns, rows, where)
        known = len(rows)
    horizon = known if horizon is None else horizon
    if horizon is None or not 1 <= horizon <= MOST_AHEAD:
        raise ConfigError(
            f"predict: horizon={horizon}: give the number of times ahead, 1 to {MOST_AHEAD:,} (--horizon)"
        )
    if covariates and horizon > (known or 0):
        raise ConfigError(
            f"predict: horizon={horizon}: {', '.join(c.name for c in covariates)} are known for {known or 0} times; "
            "give rows with these columns, one for each time ahead"
        )
    try:
        predictive = questions.forecast(run, horizon, _first(ahead, horizon))
    except ConfigMismatchError as error:
        raise ConfigError(f"predict: {error}") from None
    n_classes = problem.system.n_classes if isinstance(problem.system, CategoricalSeries) else 0
    frame = frame_of_predictive(predictive, problem.state_names, [str(k) for k in range(n_classes)])
    dates = dates_ahead(problem.dates, problem.observations.shape[1], horizon)
    frame.insert(0, "time", dates or range(1, horizon + 1))
    return frame


def _read_ahead(problem: Series, columns: InputColumns, rows: Any, where: str) -> FutureCovariates:
    """Regressors and inputs at the times ahead, from rows with the next dates."""
    if not columns.columns:
        raise ConfigError(
            "predict: the series has no regressors and no inputs; give horizon (--horizon) in place of rows"
        )
    values = to_inputs(rows, columns, where).to(problem.observations)
    expected = dates_ahead(problem.dates, problem.observations.shape[1], len(values))
    check_times(rows, columns.time, expected, where)
    split = len(problem.regressor_names)
    return FutureCovariates(
        values[:, :split] if split else None, values[:, split:] if problem.input_names else None
    )


def _first(ahead: FutureCovariates | None, horizon: int) -> FutureCovariates | None:
    if ahead is None:
        return None
    return FutureCovariates(*(None if value is None else value[:horizon] for value in ahead))
