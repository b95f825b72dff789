"""Rows for predictions: conversion of files and frames to inputs, by the columns of training."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from components.contracts.problems import Counts
from components.datasets.own.missing_words import is_missing
from components.datasets.own.text_table import TextTable, decode, read_table
from components.datasets.text.words import tokens_of
from components.errors import ConfigMismatchError, DamagedFileError, list_names
from components.problems.input_columns import InputColumn, InputColumns, TimeColumn
from components.series.calendars.dates_ahead import find_other_dates
from components.topics.corpus import count_words
from components.topics.counted_corpus import to_word_counts
from runner.errors import ConfigError, RunnerWarning, nearest

TEXT = "text"  # column with documents
MOST_NAMED = 8  # largest number of columns in a message


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (ConfigMismatchError, DamagedFileError) as error:
        raise ConfigError(f"predict: {error}") from None


def read_documents(file: Path) -> pd.DataFrame:
    """Read the lines of a text file as a column ``text``.

    Raises:
        ConfigError: the file does not exist or is not text.
    """
    with _reading():
        return pd.DataFrame({TEXT: decode(file, None)[0].splitlines()})


def read_rows(file: Path, columns: InputColumns) -> pd.DataFrame:
    """Read the rows of a CSV or Parquet file; cells of a CSV file are strings.

    Raises:
        ConfigError: the file does not exist or is not a table.
    """
    with _reading():
        if file.suffix.lower() in (".parquet", ".pq"):
            try:
                return pd.read_parquet(file)
            except ValueError as error:
                raise ConfigError(
                    f"predict: {file}: not a Parquet file ({' '.join(str(error).split()):.200})"
                ) from None
            except ImportError:
                raise ConfigError(
                    f"predict: {file}: Parquet requires pyarrow; pip install pyarrow, or give a CSV file"
                ) from None
        # the decimal mark cannot be inferred from a single row
        table = read_table(file, ",", columns.missing, (), columns.decimal, by_time=True)
    if "lines left out" in table.facts:
        warnings.warn(
            f"{file}: lines were skipped: {table.facts['lines left out']}", RunnerWarning, 2
        )
    return pd.DataFrame(table.cells, index=pd.Index(table.lines), dtype=object)


def to_inputs(rows: Any, columns: InputColumns, where: str) -> Tensor:
    """Inputs [B, D] in float64, standardised like the training rows.

    Args:
        rows: a frame with the columns by name, or numbers [B, D] in their order.
        columns: columns of the model.
        where: name of the rows in messages.

    Raises:
        ConfigError: a column is missing, a cell has the wrong type, or a category is unknown.
    """
    frame = _to_frame(rows, columns, where)
    if not len(frame):
        raise ConfigError(f"predict: {where} has no rows; give at least one")
    parts = [_encode(frame[column.name], column, columns, where) for column in columns.columns]
    return columns.convert(torch.from_numpy(np.concatenate(parts, 1)))


def _to_frame(rows: Any, columns: InputColumns, where: str) -> pd.DataFrame:
    """Convert rows to a frame; raises ConfigError for missing or repeated columns, or rows that are
    not numbers [B, D]."""
    names = [column.name for column in columns.columns]
    if isinstance(rows, pd.DataFrame):
        given = [str(name) for name in rows.columns]
        if missing := [name for name in names if name not in given]:
            hint = nearest(missing[0], given)
            raise ConfigError(
                f"predict: {where} lacks {list_names(missing, MOST_NAMED)}{hint}; "
                f"the model reads {list_names(names, MOST_NAMED)}"
            )
        if twice := [name for name in names if given.count(name) > 1]:
            raise ConfigError(f"predict: {where} has two columns {twice[0]!r}; rename one")
        return rows
    if texts := [column for column in columns.columns if column.levels or column.date_format]:
        raise ConfigError(
            f"predict: {where} has no column names, but {texts[0].name} is a text column; give a frame"
        )
    try:
        return pd.DataFrame(np.asarray(rows, dtype=np.float64), columns=names)
    except (TypeError, ValueError):
        raise ConfigError(
            f"predict: {where} is not a table of numbers with {len(names)} columns; give a frame or an array "
            f"[B, {len(names)}]"
        ) from None


def check_times(rows: Any, time: TimeColumn | None, expected: list[str], where: str) -> None:
    """Check the dates of the rows of a series: its date column, or the index of a frame.

    Raises:
        ConfigError: a date differs from the expected one.
    """
    if time is None or not expected or not isinstance(rows, pd.DataFrame):
        return
    dates = rows.get(time.name)
    if dates is None and isinstance(rows.index, pd.DatetimeIndex | pd.PeriodIndex):
        dates = rows.index.to_series()
    if dates is None:
        return
    texts = [str(date or "") for date in dates]
    with _reading():
        wrong = find_other_dates(texts, expected, f"{where}: {time.name}", time.date_format)
    for row in wrong[:1]:
        raise ConfigError(
            f"predict: {_place(where, dates, row)}: {time.name} is {texts[row]!r}, expected {expected[row]}; give the "
            "consecutive times after the series"
        )


def _encode(cells: pd.Series[Any], column: InputColumn, columns: InputColumns, where: str) -> Any:
    """Inputs [B, k] of a column; gaps are filled as in the training rows.

    Raises ConfigError: a missing cell has no fill value, or a cell has the wrong type."""
    if column == InputColumn(column.name) and pd.api.types.is_numeric_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isfinite(values).all():
            return values[:, None]
    table = TextTable(Path(), {}, [], columns.decimal)
    plain = replace(table, decimal=".")  # for cells that are not strings
    expected = f"not a number; the model was trained on {column.type}"
    if column.levels:
        expected = f"an unknown category; known ones are {list_names(column.levels, MOST_NAMED)}"
    elif column.parts:
        expected = f"not a date of the form {column.date_format}"
    rows: list[Sequence[float]] = []
    for row, cell in enumerate(cells):
        text = str(cell).strip()
        if column.parts and isinstance(cell, date):
            text = cell.strftime(column.date_format)
        gap = bool(pd.isna(cell))
        if isinstance(cell, str) and text not in column.levels:
            gap = is_missing(text, columns.missing, True)
        number = (table if isinstance(cell, str) else plain).number
        inputs = column.fill if gap else column.encode(text, number)
        if inputs is None:
            wrong = "missing; fill it" if gap else f"{cell!r}, {expected}"
            raise ConfigError(f"predict: {_place(where, cells, row)}: {column.name} is {wrong}")
        rows.append(inputs)
    return np.array(rows, dtype=np.float64).reshape(len(rows), column.n_inputs)


def _place(where: str, cells: pd.Series[Any], row: int) -> str:
    """Location of a cell: the index of a frame, or the line of a file."""
    label = "line" if where.endswith((".csv", ".tsv", ".txt")) else "row"
    return f"{where}, {label} {cells.index[row]}"


def to_documents(rows: Any, vocabulary: Sequence[str], where: str) -> Counts:
    """Documents as counts of the words of a vocabulary.

    Args:
        rows: a frame with a column ``text``, or with counts in columns named by words (a word
            without a column has count zero); or counts [B, V].
        vocabulary: words of the model [V].
        where: name of the rows in messages.

    Raises:
        ConfigError: no such column exists, or a count is negative or not an integer.
    """
    if isinstance(rows, pd.DataFrame) and TEXT in rows and TEXT not in vocabulary:
        texts = ["" if text is None or text != text else str(text) for text in rows[TEXT]]
        return to_word_counts([tokens_of(text) for text in texts], vocabulary)
    if isinstance(rows, pd.DataFrame):
        known_words = [name for name in rows.columns if name in set(vocabulary)]
        if not known_words:
            raise ConfigError(
                f"predict: {where} has neither a column {TEXT} nor a column named by a word of the model; words are "
                f"{list_names(list(vocabulary), MOST_NAMED)}"
            )
        counts = to_inputs(rows, InputColumns.named([str(name) for name in known_words]), where)
        table = torch.zeros(len(rows), len(vocabulary), dtype=torch.float64)
        table[:, [list(vocabulary).index(name) for name in known_words]] = counts
    else:
        table = to_inputs(rows, InputColumns.named(list(vocabulary)), where)
    with _reading():
        return count_words(table)
