"""Columns of a table of the user's own, read as text and made into numbers: every guess is told, every bad cell is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.trouble import DamagedFile, Misfit

MOST_LEVELS = 30  # different texts that a column of inputs may hold: one input for each
TRUE_OR_FALSE = {"true": 1.0, "false": 0.0}
Array = NDArray[np.float64]


@dataclass(frozen=True)
class TextTable:
    """Cells as texts, None where one is missing, by the names of their columns; rows are counted as lines of the file."""

    file: Path
    cells: dict[str, list[str | None]]
    first_line: int  # line of the first row: 2 below names, 1 where a file has no lines

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.cells.values())))

    def column(self, name: str, key: str) -> list[str | None]:
        """Raises Misfit: there is no such column."""
        if name not in self.cells:
            raise Misfit(f"dataset.{key}={name}: {self.file} has no such column; there are {', '.join(self.names)}")
        return self.cells[name]

    def where(self, row: int) -> str:
        return f"{self.file}, line {self.first_line + row}"


def read_table(file: Path, delimiter: str, missing: Sequence[str]) -> TextTable:
    """A CSV file whose first line names the columns, or a Parquet file by its ending.

    Raises:
        DamagedFile: it is neither, or holds no row.
        Misfit: a name stands twice."""
    import pandas as pd

    parquet = file.suffix.lower() in (".parquet", ".pq")
    try:
        if parquet:
            frame = pd.read_parquet(file)
            names = [str(name) for name in frame.columns]
        else:
            frame = pd.read_csv(
                file, sep=delimiter, dtype=str, keep_default_na=False, header=None, encoding="utf-8-sig"
            )
            names = [str(name).strip() for name in frame.iloc[0]]
            frame = frame.iloc[1:]
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError, OSError, ValueError) as error:
        kind = "Parquet file" if parquet else f"table with cells between {delimiter!r}"
        text = re.sub(r"\s+", " ", str(error)).strip()
        if uneven := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text):
            text = "line {1} has {2} cells, the first line names {0}".format(*uneven.groups())
        raise DamagedFile(f"{file}: no {kind} ({text}); mend or replace it, or dataset.delimiter") from None
    if len(frame) == 0:
        raise DamagedFile(f"{file}: no row below the names of the columns; name another file")
    if twice := [name for name in names if names.count(name) > 1]:
        raise Misfit(f"{file}: two columns are called {twice[0]!r}; rename one")

    def cell(value: Any) -> str | None:
        text = None if pd.isna(value) else str(value).strip()
        return None if text is None or text in missing else text

    cells = {name: [cell(value) for value in frame.iloc[:, j]] for j, name in enumerate(names)}
    return TextTable(file, cells, 1 if parquet else 2)


def number(text: str) -> float | None:
    """A finite number, 1 or 0 for true or false; None where a text is neither."""
    if text.lower() in TRUE_OR_FALSE:
        return TRUE_OR_FALSE[text.lower()]
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


@dataclass(frozen=True)
class Encoded:
    """Inputs of one column, [N, k] with k = 1 for numbers and one for each text but the first otherwise, and what it was taken
    for."""

    values: Array
    taken_for: str


def encode(table: TextTable, name: str) -> Encoded:
    """A column of inputs: numbers where every cell is one, else 1 for the text of a row and 0 for the others.

    The first text of the alphabet is the one that others are compared with, and has no input: with one for each, and an
    intercept, inputs would depend on each other.
    A cell that is no number in a column where nine in ten are is named as a mistake, not taken for a text.

    Raises:
        Misfit: a cell is missing, one is no number among numbers, or there are too many different texts."""
    cells = table.column(name, "inputs")
    for row, cell in enumerate(cells):
        if cell is None:
            raise Misfit(f"{table.where(row)}: {name} is missing; fill it, or leave the column out of dataset.inputs")
    texts = [str(cell) for cell in cells]
    numbers = [number(text) for text in texts]
    bad = [row for row, value in enumerate(numbers) if value is None]
    if not bad:
        kind = "true or false" if {text.lower() for text in texts} <= set(TRUE_OR_FALSE) else "numbers"
        return Encoded(np.array(numbers, dtype=np.float64)[:, None], kind)
    if 10 * len(bad) <= len(texts):
        raise Misfit(
            f"{table.where(bad[0])}: {name} is {texts[bad[0]]!r}, no number as the others are; mend it, or leave the "
            "column out of dataset.inputs"
        )
    levels = sorted(set(texts))
    if len(levels) > MOST_LEVELS:
        raise Misfit(
            f"dataset.inputs: {name} holds {len(levels)} different texts, at most {MOST_LEVELS} become inputs; leave it "
            "out, or make numbers of it"
        )
    values = np.array([[float(text == level) for level in levels[1:]] for text in texts]).reshape(len(texts), -1)
    return Encoded(values, f"{len(levels)} texts")


def real_labels(table: TextTable, name: str) -> Array:
    """Labels of one task [N], NaN where a cell is missing.

    Raises:
        Misfit: a cell is no number."""
    found = np.full(table.n_rows, np.nan)
    for row, cell in enumerate(table.column(name, "targets")):
        if cell is not None:
            value = number(cell)
            if value is None:
                raise Misfit(
                    f"{table.where(row)}: {name} is {cell!r}, no number; mend it, add it to dataset.missing, or set "
                    "dataset.labels to binary or classes"
                )
            found[row] = value
    return found


def class_labels(table: TextTable, names: Sequence[str], binary: bool) -> tuple[NDArray[np.int64], list[str]]:
    """Class numbers [N, T], −1 where a cell is missing, and the classes in order: numbers by size, else texts by alphabet.

    All tasks have the same classes.

    Raises:
        Misfit: fewer than two classes, more than two where two are asked for, numbers with fractions, or as many classes as
            hardly any label is seen twice."""
    columns = [table.column(name, "targets") for name in names]
    texts = {cell for cells in columns for cell in cells if cell is not None}
    values = {text: number(text) for text in texts}
    by_size = all(value is not None for value in values.values())
    classes = sorted(texts, key=lambda text: (values[text], text) if by_size else (0.0, text))
    if len(classes) < 2 or (binary and len(classes) > 2):
        shown = ", ".join(classes[:6]) + (", …" if len(classes) > 6 else "")
        mend = "name other columns" if len(classes) < 2 else "set dataset.labels=classes"
        asked = "two are asked for" if binary else "two or more are needed"
        raise Misfit(f"dataset.targets={','.join(names)}: {len(classes)} classes ({shown}), {asked}; {mend}")
    if fraction := next((text for text, value in values.items() if value is not None and value % 1), None):
        raise Misfit(
            f"dataset.targets={','.join(names)}: {fraction} is a number with a fraction, no class; set dataset.labels=real"
        )
    if 2 * len(classes) > (labels := sum(cell is not None for cells in columns for cell in cells)) > 2 * MOST_LEVELS:
        raise Misfit(
            f"dataset.targets={','.join(names)}: {len(classes)} classes of {labels} labels, most seen once; name another "
            "column, or set dataset.labels=real"
        )
    place = {text: i for i, text in enumerate(classes)}
    found = np.array([[-1 if cell is None else place[cell] for cell in cells] for cells in columns], dtype=np.int64)
    return found.T, classes
