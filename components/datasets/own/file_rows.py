"""Text of a file as rows of cells: its encoding, delimiter, comment lines and blank lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

from components.datasets.own.number_marks import is_number
from components.errors import ConfigMismatchError, DamagedFileError

Row = tuple[int, list[str]]  # line of the file, and cells
DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'", " ": "blanks"}
SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # first line of a file of Excel
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class FileRows(NamedTuple):
    """Rows of a file below the names of their columns, by one delimiter."""

    delimiter: str
    names: list[str]
    rows: list[Row]
    facts: dict[str, str]  # numbers of lines left out

    @property
    def ragged(self) -> Row | None:
        """The first row with another number of cells than the names."""
        return next((row for row in self.rows if len(row[1]) != len(self.names)), None)


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
            text = content.decode(name).removeprefix("\ufeff")
            return text, None if name in (encoding, "utf-8", "utf-8-sig") else name
        except UnicodeDecodeError:
            continue
        except LookupError:
            raise ConfigMismatchError(
                f"dataset.encoding={name}: no encoding of Python; as latin-1, cp1250 or shift_jis"
            ) from None
    raise DamagedFileError(
        f"{file}: no text in {' or '.join(names)}; set dataset.encoding, as cp1250 or shift_jis"
    )


def split_cells(file: Path, text: str, delimiter: str, by_time: bool) -> FileRows:
    """Rows of cells by the delimiter of a first line ``sep=…`` or the given one, or by another
    one if only that makes a table.

    Raises:
        DamagedFileError: there is no row, a quote is wrong, or a row has another number of cells
            than there are names.
    """
    lines = list(io.StringIO(text, newline=""))
    if lines and (stated := SEPARATOR.fullmatch(lines[0])):
        delimiter = stated[1]
        lines[0] = "\n"
    tables: dict[str, FileRows] = {}
    errors: list[DamagedFileError] = []
    for mark in dict.fromkeys((delimiter, *DELIMITERS)):
        try:
            tables[mark] = _read_rows(file, lines, mark, by_time)
        except DamagedFileError as error:
            errors.append(error)
    wide = [table for table in tables.values() if len(table.names) > 1]
    fitting = [table for table in wide if table.ragged is None]
    if delimiter not in tables and not fitting:
        raise errors[0]
    table = (fitting or [tables[delimiter]])[0]
    if not table.rows:
        content = "no line after its names" if table.names else "nothing"
        raise DamagedFileError(
            f"dataset.path={file.name}: the file is empty, {file} holds {content}; name another"
        )
    if table.ragged is not None:
        line, row = table.ragged
        raise DamagedFileError(
            f"{file}, line {line}: {len(row)} cells under {len(table.names)} names; name every column in the first line, "
            "repair lines that differ, or set dataset.delimiter (a single column with decimal commas has ';')"
        )
    return table


def _read_rows(file: Path, lines: list[str], mark: str, by_time: bool) -> FileRows:
    """Rows that are not blank, or all of a single column of times between the first and the last.

    Lines that begin with # are comments where they have another number of cells than the first
    other line, or stand above it and that line has the names.

    Raises:
        DamagedFileError: a quote is wrong.
    """
    reader = csv.reader(lines, delimiter=mark, strict=True, skipinitialspace=mark == " ")
    try:
        every = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DamagedFileError(
            f"{file}, line {reader.line_num}: no CSV file ({error}); repair its quotes, or set dataset.delimiter"
        ) from None
    filled = [(line, row) for line, row in every if len(row) > 1 or "".join(row).strip()]
    if not filled:
        return FileRows(mark, [], [], {})
    start, top = next((pair for pair in filled if pair[1][0][:1] != "#"), filled[0])
    has_number = any(map(is_number, top))
    rows = [
        (line, row)
        for line, row in filled
        if row[0][:1] != "#" or (len(row) == len(top) and (line >= start or has_number))
    ]
    first, names = rows[0]
    if by_time and len(names) == 1:
        last = max(line for line, row in every if row and not row[0].isspace())
        rows = [(line, row or [""]) for line, row in every if first <= line <= last]
    kept = {line for line, _ in rows}
    left_out = [
        line for line, row in every if line not in kept and (row or first < line < filled[-1][0])
    ]
    facts = (
        {"lines left out": f"{len(left_out)}, blank or comments, the first is line {left_out[0]}"}
        if left_out
        else {}
    )
    del rows[0]
    if (
        rows
        and lines[rows[-1][0] - 1].startswith('"')
        and {len(row) for _, row in rows} == {len(names) + 1}
    ):
        names = ["", *names]  # R names the rows, and not their column
    return FileRows(mark, [name.strip() for name in names], rows, facts)
