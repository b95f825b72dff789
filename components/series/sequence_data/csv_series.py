"""A user's own series: columns of a CSV file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.roles import NonEmptyList, Setting
from components.contracts.streams import Rng
from components.datasets.own.collinear import name_collinear
from components.datasets.own.number_marks import Decimal
from components.datasets.own.own_file import OwnFile
from components.datasets.own.text_table import TextTable, read_table
from components.datasets.tables.raw_units import check_squares
from components.errors import ConfigMismatchError
from components.problems.input_columns import InputColumns
from components.registry import register
from components.series.budget.budget import Budget
from components.series.calendars.calendar import Calendar, calendar, place
from components.series.calendars.equal_steps import Gaps
from components.series.figures.signal import signal
from components.series.forecasting import Origin, split
from components.series.sequence import Sequence


@register("dataset", "csv_series")
class CsvSeries(OwnFile[Sequence]):
    """Series from the columns of a CSV file, one time per line.

    The first line of the file names the columns.  y_t holds the ``columns`` at time t, NaN if a
    cell is one of the words in ``missing``; x_t the ``regressors``, u_t the ``inputs`` (spending on
    channels); the ``truth`` columns of the signal E[y_t | x_t], if any, are used only by scores and
    figures.  Dates rise by equal steps; with ``gaps: allow`` times without a line are missing,
    including their x, and their u is 0.  The last ``n_ahead`` times, or the times from a date on,
    are to be forecast; there x and u are known in advance and y may be missing, and the problem is
    a ``Forecasting``.  All R replicates have the same observations [R, T, dy].  The name of the
    data includes the beginning of the file's checksum.

    Raises:
        DataUnavailableError: the file does not exist.
        DamagedFileError: the file is empty, or not a table.
        ConfigMismatchError: a column is missing or constant, a cell is not a number, dates are out
            of order, a required x or u is missing, or y is never observed.

    Source: Shafranovich (2005), RFC 4180.
    """

    kind = "sequence"
    traits = {"unknown_states"}
    vectorised = True

    columns: NonEmptyList[str]
    truth: list[str] | None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)]
    decimal: Decimal | None
    encoding: str | None
    missing: list[str]
    exclude: list[str]
    date: str | None
    date_format: str | None
    gaps: Gaps
    regressors: list[str] | None
    inputs: list[str]
    n_ahead: NonNegativeInt | str
    origin: Origin
    season: PositiveInt
    intervention: bool
    budget: Budget | None
    skip: NonNegativeInt
    n_steps: Annotated[int, Field(ge=1)] | None

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        table = self._table(setting.data_dir)
        times = self._calendar(table)
        regressors = self._regressors(table)
        n_train = self._train_length(times)
        n_ahead = len(times.dates) - n_train
        if self.truth is not None and len(self.truth) != len(self.columns):
            raise ConfigMismatchError(
                f"dataset.truth: names {len(self.truth)} columns, but dataset.columns names {len(self.columns)}"
            )

        def to_device(value: Tensor) -> Tensor:
            return setting.place(value).contiguous()

        def spread(names: list[str], key: str, between: float = math.nan) -> Tensor:
            values = self._numbers(table, names, key)
            out = values.new_full((len(values) + times.gaps, len(names)), between)
            out[times.places] = values
            return out  # [T, …]

        y = spread(self.columns, "columns")
        if bool(y[:n_train].isnan().any(1).all()):
            raise ConfigMismatchError(
                f"dataset.columns={','.join(self.columns)}: missing at all {n_train} observed times"
            )
        means = None if self.truth is None else to_device(spread(self.truth, "truth").unsqueeze(0))
        x = spread(regressors, "regressors")
        u = spread(self.inputs, "inputs", 0.0)
        dates = times.dates if self.date is not None else ()
        where = list(dates) or [f"line {line}" for line in table.lines]
        self._check(table.file, x, regressors, "regressors", n_train, where)
        self._check(table.file, u, self.inputs, "inputs", n_train, where)

        covariates = [*regressors, *self.inputs]
        named = name_collinear(torch.cat([x, u], 1)[:n_train], covariates)
        sequence = Sequence(
            name=self.identity(setting.data_dir, setting.offline),
            states=None,
            observations=to_device(y.expand(setting.replicates, -1, -1)),
            means=means,
            system=None,
            state_names=self.columns,
            regressors=to_device(x) if regressors else None,
            regressor_names=regressors,
            inputs=to_device(u) if self.inputs else None,
            input_names=self.inputs,
            dates=dates,
            figures=[signal],
            columns=replace(
                InputColumns.named(covariates),
                decimal=table.decimal,
                missing=tuple(self.missing),
                time=times.time,
            ),
            about=table.facts
            | times.facts
            | ({"collinear": f"{named}; their coefficients are weakly identified"} if named else {})
            | ({} if means is None else {"truth": "of the signal: " + ", ".join(self.truth or [])}),
        )
        if n_ahead == 0:
            if self.budget is not None and self.budget.total is not None:
                raise ConfigMismatchError(
                    f"dataset.budget.total={self.budget.total:g}: requires a forecast; set dataset.n_ahead"
                )
            return sequence
        return split(sequence, n_ahead, self.origin, self.budget, self.intervention, self.season)

    def _table(self, data_dir: Path) -> TextTable:
        """The requested lines.

        Raises:
            ConfigMismatchError: the file has too few lines."""
        file = self.file(data_dir)
        table = read_table(
            file,
            self.delimiter,
            self.missing,
            self.exclude,
            self.decimal,
            self.encoding,
            by_time=True,
        )
        table = table.part(self.skip, self.n_steps)
        if not table.n_rows or (self.n_steps is not None and table.n_rows < self.n_steps):
            raise ConfigMismatchError(
                f"dataset.n_steps={self.n_steps}: {file} has only {table.n_rows} lines after dataset.skip={self.skip}"
            )
        return table

    def _train_length(self, times: Calendar) -> int:
        """Number of times to learn from.

        Raises:
            ConfigMismatchError: the time is not in the series.
        """
        n_train = len(times.dates)
        if isinstance(self.n_ahead, str):
            dates = times.dates if self.date else ()
            return place(dates, self.n_ahead, "dataset.n_ahead", self.date_format)
        if n_train <= self.n_ahead:
            raise ConfigMismatchError(
                f"dataset.n_ahead={self.n_ahead}: there are only {n_train} time points; leave some for training"
            )
        return n_train - self.n_ahead

    def _regressors(self, table: TextTable) -> list[str]:
        """Names of the columns x; null selects every column without another use."""
        used = {*self.columns, *self.inputs, *(self.truth or []), self.date}
        return (
            [name for name in table.names if name not in used]
            if self.regressors is None
            else self.regressors
        )

    def _calendar(self, table: TextTable) -> Calendar:
        """The calendar of the file.  Raises ConfigMismatchError for invalid dates."""
        if self.date is None:
            return Calendar(("",) * table.n_rows, list(range(table.n_rows)))
        dates = table.complete_column(self.date, "date", "line")
        return calendar(dates, table.lines, str(table.file), self.date, self.gaps, self.date_format)

    def _check(
        self, file: Path, values: Tensor, names: list[str], key: str, seen: int, where: list[str]
    ) -> None:
        """Check the regressors or inputs [T, …] of y.

        Each must vary where y is observed and be known afterwards; inputs must be known everywhere.

        Raises:
            ConfigMismatchError: a column violates this.
        """
        for j, name in enumerate(names):
            column = values[:, j]
            observed_values = column[:seen][~column[:seen].isnan()]
            if len(observed_values) == 0 or bool((observed_values == observed_values[0]).all()):
                constant = "missing" if len(observed_values) == 0 else f"{observed_values[0]:g}"
                raise ConfigMismatchError(
                    f"dataset.{key}={name}: is {constant} at all {seen} observed times; remove it"
                )
            must = column if key == "inputs" else column[seen:]
            if len(gone := must.isnan().nonzero().flatten()):
                first = where[int(gone[0]) + len(column) - len(must)]
                why = "write 0 for no spending" if key == "inputs" else "a forecast needs it"
                raise ConfigMismatchError(
                    f"{file}, {first}: {name} of dataset.{key} is missing; {why}"
                )

    def _numbers(self, table: TextTable, names: list[str], key: str) -> Tensor:
        """Columns by name [T, …], NaN where missing.

        Raises:
            ConfigMismatchError: a column is missing or named twice, a cell is not a number, or
                squares of numbers overflow or underflow.
        """
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigMismatchError(f"dataset.{key}: lists {twice[0]} twice; remove one")
        columns = []
        for name in names:
            column = torch.from_numpy(table.numbers(name, key, "or add it to dataset.missing"))
            if len(present_values := column[~column.isnan()]):
                check_squares(present_values.unsqueeze(1), [f"{name} of dataset.{key}"])
            columns.append(column)
        return torch.stack(columns, 1) if columns else torch.empty(table.n_rows, 0).double()
