"""Forecasts after the end of a fitted series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd
import torch

from components.contracts.capabilities import CategoricalSeries
from components.contracts.posteriors import Forecasts
from components.contracts.predictive import Predictive
from components.contracts.sequences import FutureCovariates
from components.errors import ConfigMismatchError
from components.problems.input_columns import InputColumns
from components.series.calendars.dates_ahead import dates_ahead
from components.series.forecasting import Forecasting
from components.series.sequence import Sequence
from runner.errors import ConfigError
from runner.python.export.answer_frames import frame_of_predictive
from runner.python.export.new_rows import check_times, to_inputs
from runner.python.export.restored import RestoredRun

MOST_AHEAD = 10_000  # longest horizon of a forecast
PROBED_TIMES = 5  # number of probed times if the horizon is unknown

Probes = Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class SeriesAnswers:
    """Forecasts of times after the training times."""

    kind: ClassVar[Literal["forecasts"]] = "forecasts"
    run: RestoredRun
    problem: Sequence
    posterior: Forecasts

    @property
    def columns(self) -> InputColumns:
        """Columns of regressors and inputs."""
        names = [*self.problem.regressor_names, *self.problem.input_names]
        return self.problem.columns or InputColumns.named(names)

    def ask(self, horizon: int, ahead: FutureCovariates | None) -> Predictive:
        """Forecast of y_{T+1} … y_{T+H} after the T training times [S, H, dy].

        Args:
            horizon: H.
            ahead: regressors and inputs at the H times; if None, the dataset's, if it has them.
        """
        series = self.problem.series
        series = series if ahead is None else series._replace(ahead=ahead)
        with torch.no_grad():
            return self.posterior.forecast(series, horizon, self.run.rng.at("evaluation", 0))

    def probes(self) -> Probes:
        """Forecasts of test times; the last regressors and inputs are repeated."""
        problem = self.problem
        if isinstance(problem, Forecasting):
            yield problem.future.shape[1], problem.beyond
            return
        last = [
            None if value is None else value[-PROBED_TIMES:].nan_to_num()
            for value in (problem.regressors, problem.inputs)
        ]
        yield min(PROBED_TIMES, problem.observations.shape[1]), FutureCovariates(*last)

    def frame(self, rows: Any, where: str, horizon: int | None) -> pd.DataFrame:
        """One row per future time; ``rows`` have its regressors and inputs.

        Raises:
            ConfigError: the horizon, or regressors at future times, are unknown.
        """
        problem = self.problem
        horizon, ahead = self._choose_horizon(rows, where, horizon)
        try:
            predictive = self.ask(horizon, ahead)
        except ConfigMismatchError as error:
            raise ConfigError(f"predict: {error}") from None
        system = problem.system
        n_classes = system.n_classes if isinstance(system, CategoricalSeries) else 0
        classes = [str(k) for k in range(n_classes)]
        frame = frame_of_predictive(predictive, problem.state_names, classes)
        frame.insert(0, "time", self.list_dates(horizon) or range(1, horizon + 1))
        return frame

    def _choose_horizon(
        self, rows: Any, where: str, horizon: int | None
    ) -> tuple[int, FutureCovariates | None]:
        """Number of future times, and their regressors and inputs."""
        problem = self.problem
        ahead = problem.beyond if isinstance(problem, Forecasting) else None
        n_known = problem.future.shape[1] if isinstance(problem, Forecasting) else None
        if rows is not None:
            ahead = self._read_ahead(rows, where)
            n_known = len(rows)
        horizon = n_known if horizon is None else horizon
        if horizon is None or not 1 <= horizon <= MOST_AHEAD:
            raise ConfigError(
                f"predict: horizon={horizon}: must be the number of future times, 1 to {MOST_AHEAD:,} (--horizon)"
            )
        if (covariates := self.columns.columns) and horizon > (n_known or 0):
            raise ConfigError(
                f"predict: horizon={horizon}: {', '.join(c.name for c in covariates)} are known for {n_known or 0} times; "
                "give rows with these columns, one for each future time"
            )
        if ahead is not None:
            parts = (None if value is None else value[:horizon] for value in ahead)
            ahead = FutureCovariates(*parts)
        return horizon, ahead

    def list_dates(self, horizon: int) -> list[str]:
        """Dates of future times; empty for a series without dates."""
        return dates_ahead(self.problem.dates, self.problem.observations.shape[1], horizon)

    def _read_ahead(self, rows: Any, where: str) -> FutureCovariates:
        """Regressors and inputs at future times, from rows with consecutive dates."""
        problem = self.problem
        if not self.columns.columns:
            raise ConfigError(
                "predict: the series has no regressors or inputs; give horizon (--horizon) instead of rows"
            )
        values = to_inputs(rows, self.columns, where).to(problem.observations)
        check_times(rows, self.columns.time, self.list_dates(len(values)), where)
        split = len(problem.regressor_names)
        return FutureCovariates(
            values[:, :split] if split else None, values[:, split:] if problem.input_names else None
        )
