"""A file of the user's own as a table of texts: its encoding, delimiter and decimal mark are
recognised, and said."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from components.errors import ConfigMismatchError, DamagedFileError

Decimal = Literal[".", ","]
Row = tuple[int, list[str]]  # line of the file, and cells
TRUE_OR_FALSE = {"true": 1.0, "false": 0.0}
DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
THOUSANDS_NUMBER = re.compile(
    r"[+-]?[1-9]\d{0,2},\d{3}"
)  # 1,234: a fraction, or more than a thousand
GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?:[.,]\d+)?")

NUMBER = r"\d[\d.,'’\u00a0\u202f ]*(?:[eE][+-]?\d+)?"
NUMBER_WITH_UNIT = re.compile(
    rf"[(+\-−]*\s*[$€£¥]?\s*[+\-−]?{NUMBER}\s*[%$€£¥]?\)?"
)  # 5 %, €5, (5), −5


@dataclass(frozen=True)
class TextTable:
    """Cells as texts, None where one is missing, by the names of their columns."""

    file: Path
    cells: dict[str, list[str | None]]
    lines: list[int]  # of the file, a line for each row
    decimal: Decimal = "."
    facts: dict[str, str] = field(default_factory=dict)  # for the terminal and the record

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def column(self, name: str, key: str) -> list[str | None]:
        """Raises ConfigMismatchError: there is no such column."""
        if name not in self.cells:
            unlabelled = (
                "; of rows without labels set dataset.targets=[]" if key == "targets" else ""
            )
            raise ConfigMismatchError(
                f"dataset.{key}={name}: {self.file} has no such column; there are {', '.join(self.names)}{unlabelled}"
            )
        return self.cells[name]

    def where(self, row: int) -> str:
        return f"{self.file}, line {self.lines[row]}"

    def number(self, text: str) -> float | None:
        """A finite number, 1 or 0 for true or false; None where a text is neither."""
        if text.lower() in TRUE_OR_FALSE:
            return TRUE_OR_FALSE[text.lower()]
        other = "." if self.decimal == "," else ","
        try:
            value = float("no number" if other in text or "_" in text else text.replace(",", "."))
        except ValueError:
            return None
        return value if np.isfinite(value) else None

    def hint(self, text: str) -> str:
        """Advice on a text that is not a number, where its marks explain it; starts with a ";"."""
        if (
            COMMA_NUMBER.fullmatch(text)
            and self.decimal == "."
            and not THOUSANDS_NUMBER.fullmatch(text)
        ):
            return "; of decimal commas set dataset.decimal=','"
        if POINT_NUMBER.fullmatch(text) and self.decimal == ",":
            return "; of decimal points set dataset.decimal='.'"
        if GROUPED_NUMBER.fullmatch(text):
            return "; leave out the marks of thousands"
        dressed = (
            self.number(text) is None
            and NUMBER_WITH_UNIT.fullmatch(text)
            and re.search(r"[%$€£¥()−]", text)
        )
        return (
            "; write numbers as -1.5, without %, signs of money, brackets or a long minus"
            if dressed
            else ""
        )

    def part(self, skip: int, number: int | None) -> TextTable:
        """Rows after the first ``skip`` ones, at most so many."""
        rows = slice(skip, None if number is None else skip + number)
        cells = {name: values[rows] for name, values in self.cells.items()}
        return TextTable(self.file, cells, self.lines[rows], self.decimal, self.facts)


def read_table(
    file: Path,
    delimiter: str,
    missing: Sequence[str],
    exclude: Sequence[str] = (),
    decimal: Decimal | None = None,
    encoding: str | None = None,
) -> TextTable:
    """Read a CSV file with column names in its first line, or a Parquet file (by its ending).

    Columns in ``exclude`` are left out.  Where cells separated by ``delimiter`` do not form
    a table, the delimiters ; tab and | are tried.

    Args:
        decimal: decimal mark; None: a comma where columns are numbers only with a comma.
        encoding: None: the encoding given by the first bytes, UTF-8, or else Windows-1252.

    Raises:
        DamagedFileError: the file is not a table, or holds no row.
        ConfigMismatchError: a name occurs twice, or is not there; the decimal mark is
            ambiguous; or the encoding does not exist.
    """
    facts: dict[str, str] = {}
    if file.suffix.lower() in (".parquet", ".pq"):
        names, rows, lines = _read_parquet(file)
    else:
        text, guess = decode(file, encoding)
        names, rows, lines, separator = _split_cells(file, text, delimiter)
        facts |= {"encoding": guess} if guess else {}
        facts |= {"delimiter": DELIMITERS[separator]} if separator != delimiter else {}
    _check_names(file, names, exclude)

    def cell(text: str | None) -> str | None:
        return None if text is None or text.strip() in missing else text.strip()

    cells = {
        name: [cell(row[j]) for row in rows] for j, name in enumerate(names) if name not in exclude
    }
    if "" in cells:
        if not _is_row_index(cells.pop("")):
            raise ConfigMismatchError(
                f"{file}: column {names.index('') + 1} has no name; give it one, or leave it out by dataset.exclude=['']"
            )
        facts["left out"] = "a column without a name, which counts the rows or is empty"
    mark: Decimal = _decimal_mark(file, cells) if decimal is None else decimal
    facts |= {"decimal mark": "comma"} if mark == "," and decimal is None else {}
    return TextTable(file, cells, lines, mark, facts)


def _check_names(file: Path, names: Sequence[str], exclude: Sequence[str]) -> None:
    """Raises ConfigMismatchError: a name occurs twice, or is excluded and not there."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigMismatchError(f"{file}: two columns are called {twice[0]!r}; rename one")
    if unknown := [name for name in exclude if name not in names]:
        raise ConfigMismatchError(
            f"dataset.exclude={unknown[0]}: {file} has no such column; there are {', '.join(names)}"
        )


def _is_row_index(cells: list[str | None]) -> bool:
    """True if cells are empty, or 0, 1, 2, … or 1, 2, 3, … as an index is."""
    return set(cells) == {None} or any(
        cells == [str(start + row) for row in range(len(cells))] for start in (0, 1)
    )


def _read_parquet(file: Path) -> tuple[list[str], list[list[str | None]], list[int]]:
    """Raises DamagedFileError."""
    import pandas as pd

    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            f"{file}: no Parquet file ({' '.join(str(error).split())}); replace it"
        ) from None
    if len(frame) == 0:
        raise DamagedFileError(f"dataset.path: {file} holds no row; name another")
    columns = [
        [None if pd.isna(value) else str(value) for value in frame[name]] for name in frame.columns
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [str(name) for name in frame.columns], rows, list(range(1, len(frame) + 1))


def decode(file: Path, encoding: str | None) -> tuple[str, str | None]:
    """The text of a file, and the guessed encoding where it is not UTF-8.

    Raises:
        DamagedFileError: the bytes have another encoding.
        ConfigMismatchError: the encoding does not exist.
    """
    content = file.read_bytes()
    marked = next((name for mark, name in BOMS.items() if content.startswith(mark)), None)
    names = (
        [encoding]
        if encoding is not None
        else [marked]
        if marked is not None
        else ["utf-8", "windows-1252"]
    )
    if names[0] == "utf-8" and b"\x00" in content[:1000]:
        names = ["utf-16-le" if content[1:2] == b"\x00" else "utf-16-be"]
    for name in names:
        try:
            return content.decode(name), None if name in (encoding, "utf-8", "utf-8-sig") else name
        except UnicodeDecodeError:
            continue
        except LookupError:
            raise ConfigMismatchError(
                f"dataset.encoding={name}: no encoding of Python; as latin-1, cp1250 or shift_jis"
            ) from None
    raise DamagedFileError(
        f"{file}: no text in {' or '.join(names)}; set dataset.encoding, as cp1250 or shift_jis"
    )


def _read_rows(file: Path, text: str, mark: str) -> list[Row]:
    """Rows with a cell in them.  Raises DamagedFileError."""
    lines = csv.reader(text.splitlines(keepends=True), delimiter=mark, strict=True)
    try:
        return [
            (lines.line_num, row)
            for row in lines
            if any(cell.strip() for cell in row) or len(row) > 1
        ]
    except csv.Error as error:
        raise DamagedFileError(
            f"{file}, line {lines.line_num}: no CSV file ({error}); mend or replace it"
        ) from None


def _find_ragged(rows: list[Row]) -> Row | None:
    """The first row with another number of cells than the header."""
    return next((row for row in rows if len(row[1]) != len(rows[0][1])), None)


def _split_cells(
    file: Path, text: str, delimiter: str
) -> tuple[list[str], list[list[str | None]], list[int], str]:
    """Names, rows, their lines, and the delimiter.

    The delimiter is the given one, unless only another one makes a table.

    Raises:
        DamagedFileError: there is no row, or a row has another number of cells than the header.
    """
    tables: dict[str, list[Row]] = {}
    for mark in dict.fromkeys((delimiter, *DELIMITERS)):
        with nullcontext() if mark == delimiter else suppress(DamagedFileError):
            tables[mark] = _read_rows(file, text, mark)
    if len(tables[delimiter]) < 2:
        lacks = "no line after its names" if tables[delimiter] else "nothing"
        raise DamagedFileError(
            f"dataset.path={file.name}: the file is empty, {file} holds {lacks}; name another"
        )
    fits = [
        mark for mark, rows in tables.items() if len(rows[0][1]) > 1 and _find_ragged(rows) is None
    ]
    separator = delimiter if delimiter in fits or not fits else fits[0]
    header, *rows = tables[separator]
    if (wrong := _find_ragged(tables[separator])) is not None:
        raise DamagedFileError(
            f"{file}, line {wrong[0]}: {len(wrong[1])} cells under {len(header[1])} names; mend it, or set dataset.delimiter"
        )
    return (
        [name.strip() for name in header[1]],
        [list(row) for _, row in rows],
        [line for line, _ in rows],
        separator,
    )


def _decimal_mark(file: Path, cells: dict[str, list[str | None]]) -> Decimal:
    """A comma where whole columns are numbers with commas, and none has points.

    Raises:
        ConfigMismatchError: some columns have the one and some the other, or no comma can be
            told from one of thousands."""
    commas: list[str] = []
    unclear: list[str] = []
    points: list[str] = []
    for name, texts in cells.items():
        with_commas = _find_fractions(texts, COMMA_NUMBER, ",")
        clear = [text for text in with_commas if not THOUSANDS_NUMBER.fullmatch(text)]
        if with_commas:
            kind = commas if clear else unclear
            kind.append(f"{name} holds {(clear or with_commas)[0]}")
        if with_points := _find_fractions(texts, POINT_NUMBER, "."):
            points.append(f"{name} holds {with_points[0]}")
    mend = "set dataset.decimal to ',' or '.', or name columns that are not used in dataset.exclude"
    if commas and points:
        raise ConfigMismatchError(f"{file}: {commas[0]}, {points[0]}; {mend}")
    if unclear and not commas and not points:
        raise ConfigMismatchError(f"{file}: {unclear[0]}, a fraction or a thousand; {mend}")
    return "," if commas else "."


def _find_fractions(cells: list[str | None], pattern: re.Pattern[str], mark: str) -> list[str]:
    """Numbers with the mark in a column of numbers; empty where a text is no number."""
    texts = [text for text in cells if text is not None]
    if all(pattern.fullmatch(text) or WHOLE.fullmatch(text) for text in texts):
        return [text for text in texts if mark in text]
    return []
