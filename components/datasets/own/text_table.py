"""A user's file as a table of texts, with detection of its encoding, delimiter and decimal mark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.datasets.own.file_rows import DELIMITERS, decode, read_rows
from components.datasets.own.missing_words import find_cells
from components.datasets.own.number_marks import (
    FRACTION,
    GROUPED_NUMBER,
    Decimal,
    find_decimal_mark,
    is_number,
    parse_number,
)
from components.errors import ConfigMismatchError, DamagedFileError

Rows = Sequence[tuple[int, Sequence[str | None]]]  # line number and cells
TRUE_OR_FALSE = {"true": 1.0, "false": 0.0}
NUMBER = r"\d[\d.,'’\u00a0\u202f ]*(?:[eE][+-]?\d+)?"
NUMBER_WITH_UNIT = re.compile(
    rf"[(+\-−]*\s*[$€£¥]?\s*[+\-−]?{NUMBER}\s*(?:[%$€£¥]|(?<=\s)[^\W\d]{{1,4}}[²³]?)?\)?"
)  # 5 %, €5, (5), −5, 5 kg


@dataclass(frozen=True)
class TextTable:
    """Cells as texts, None if missing, by column name."""

    file: Path
    cells: dict[str, list[str | None]]
    lines: list[int]  # line number of each row in the file
    decimal: Decimal | None = None  # decimal mark; None means a point, by default
    facts: dict[str, str] = field(default_factory=dict)  # for the terminal and the manifest
    grouped: bool = False  # the other mark may group thousands, because the decimal mark is given

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def column(self, name: str, key: str) -> list[str | None]:
        """Cells of a column.  Raises ConfigMismatchError if it does not exist."""
        if name not in self.cells:
            unlabelled = (
                "; for rows without labels set dataset.targets=[]" if key == "targets" else ""
            )
            raise ConfigMismatchError(
                f"dataset.{key}={name}: not a column of {self.file}; its columns are {', '.join(self.names)}{unlabelled}"
            )
        return self.cells[name]

    def complete_column(self, name: str, key: str, unit: str) -> list[str]:
        """Cells of a column in which every row, or label, needs a value.

        Raises ConfigMismatchError if one is missing."""
        cells = self.column(name, key)
        if None in cells:
            raise ConfigMismatchError(
                f"{self.where(cells.index(None))}: {name} is missing; every {unit} needs a {key}"
            )
        return [cell for cell in cells if cell is not None]

    def where(self, row: int) -> str:
        return f"{self.file}, line {self.lines[row]}"

    def number(self, text: str) -> float | None:
        """A finite number, 1 or 0 for true or false; None otherwise."""
        if text.lower() in TRUE_OR_FALSE:
            return TRUE_OR_FALSE[text.lower()]
        return parse_number(text, self.decimal, self.grouped)

    def numbers(self, name: str, key: str, advice: str) -> NDArray[np.float64]:
        """A column of numbers [N], NaN for missing cells.

        Raises:
            ConfigMismatchError: the column does not exist, or a cell is not a number; ``advice``
                gives alternatives to correcting it."""
        out = np.full(self.n_rows, np.nan)
        for row, cell in enumerate(self.column(name, key)):
            if cell is not None:
                value = self.number(cell)
                if value is None:
                    raise ConfigMismatchError(
                        f"{self.where(row)}: {name} is {cell!r}, not a number; correct it, {advice}{self.hint(cell)}"
                    )
                out[row] = value
        return out

    def hint(self, text: str) -> str:
        """Advice on a text that is not a number, if its marks explain it; begins with ";"."""
        if GROUPED_NUMBER.fullmatch(text):
            return "; remove the thousands marks, or set dataset.decimal to the decimal mark"
        if FRACTION.fullmatch(text) and self.number(text) is None:
            return f"; for such fractions set dataset.decimal='{',' if ',' in text else '.'}'"
        dressed = (
            self.number(text) is None
            and NUMBER_WITH_UNIT.fullmatch(text)
            and re.search(r"[%$€£¥()−]|\s[^\W\d]", text)
        )
        return (
            "; write numbers as -1.5, without %, units, currency signs, brackets or a long minus"
            if dressed
            else ""
        )

    def part(self, skip: int, number: int | None) -> TextTable:
        """At most ``number`` rows after the first ``skip`` rows."""
        return self.take(range(self.n_rows)[skip : None if number is None else skip + number])

    def take(self, rows: Sequence[int]) -> TextTable:
        """The given rows, in this order."""
        cells = {name: [values[row] for row in rows] for name, values in self.cells.items()}
        return replace(self, cells=cells, lines=[self.lines[row] for row in rows])


def read_table(
    file: Path,
    delimiter: str,
    missing: Sequence[str],
    exclude: Sequence[str] = (),
    decimal: Decimal | None = None,
    encoding: str | None = None,
    by_time: bool = False,
) -> TextTable:
    """Read a CSV file with column names in its first line, or a Parquet file (by its ending).

    Columns in ``exclude`` are left out.  If cells separated by ``delimiter`` do not form a table,
    the delimiters ; tab | and blank are tried.

    Args:
        decimal: decimal mark; the other mark may group thousands.  If None, it is a comma if
            columns are numeric only with a comma.
        encoding: by default the encoding given by the first bytes, UTF-8, or else Windows-1252.
        by_time: rows are equally spaced times, so a blank line of a single column is a missing
            value; other blank lines are skipped and counted.

    Raises:
        DamagedFileError: the file is not a table, or has no rows.
        ConfigMismatchError: a name occurs twice or does not exist, the decimal mark is ambiguous,
            or the encoding does not exist.
    """
    facts: dict[str, str] = {}
    separator = ","
    rows: Rows
    if file.suffix.lower() in (".parquet", ".pq"):
        names, rows = _read_parquet(file)
    else:
        text, guess = decode(file, encoding)
        facts |= {"encoding": guess} if guess else {}
        separator, names, rows, left_out = read_rows(file, text, delimiter, by_time)
        facts |= left_out
        if separator != delimiter:
            facts["delimiter"] = DELIMITERS.get(separator, separator)
    if unknown := [name for name in exclude if name not in names]:
        raise ConfigMismatchError(
            f"dataset.exclude={unknown[0]}: not a column of {file}; its columns are {', '.join(names)}"
        )
    if all(map(is_number, names)):
        facts["names"] = (
            f"{', '.join(names[:3])}, which are numbers; the first line is not a data row"
        )
    cells = _name_columns(file, names, rows, exclude, missing)
    if "" in names and "" not in {*exclude, *cells}:
        facts["left out"] = "a column without a name, which numbers the rows or is empty"
    grouped = decimal is not None
    if decimal is None:
        decimal, mark = find_decimal_mark(file, cells, separator)
        facts |= {"decimal mark": mark} if mark else {}
    return TextTable(file, cells, [line for line, _ in rows], decimal, facts, grouped)


def _name_columns(
    file: Path,
    names: Sequence[str],
    rows: Rows,
    exclude: Sequence[str],
    missing: Sequence[str],
) -> dict[str, list[str | None]]:
    """Cells by column name, without excluded columns and the row index.

    Raises ConfigMismatchError for a missing or duplicate name."""
    cells: dict[str, list[str | None]] = {}
    for j, name in enumerate(names):
        column = find_cells([row[j] for _, row in rows], missing)
        if name in exclude or (not name and _is_row_index(column)):
            continue
        if not name:
            raise ConfigMismatchError(
                f"{file}: column {j + 1} has no name; name it, or exclude it with dataset.exclude=['']"
            )
        if name in cells:
            raise ConfigMismatchError(f"{file}: two columns have the name {name!r}; rename one")
        cells[name] = column
    return cells


def _is_row_index(cells: list[str | None]) -> bool:
    """True if cells are empty, or 0, 1, 2, … or 1, 2, 3, … like an index."""
    return set(cells) == {None} or any(
        cells == [str(start + row) for row in range(len(cells))] for start in (0, 1)
    )


def _read_parquet(file: Path) -> tuple[list[str], Rows]:
    """Read a Parquet file.  Raises DamagedFileError if it is invalid."""
    import pandas as pd

    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            f"{file}: not a Parquet file ({' '.join(str(error).split())}); replace it"
        ) from None
    if len(frame) == 0:
        raise DamagedFileError(f"dataset.path: {file} has no rows; choose another")
    columns = [
        [None if pd.isna(value) else str(value) for value in frame.iloc[:, j]]
        for j in range(frame.shape[1])
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [str(name) for name in frame.columns], list(enumerate(rows, 1))
