"""Text of a file as rows of cells: its encoding, delimiter, comment lines and blank lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from components.datasets.own.number_marks import is_number
from components.errors import ConfigMismatchError, DamagedFileError

Row = tuple[int, list[str]]  # line number and cells
DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'", " ": "blanks"}
SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # first line of an Excel file
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def decode(file: Path, encoding: str | None) -> tuple[str, str | None]:
    """The text of a file, and the guessed encoding if it is not UTF-8.

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
                f"dataset.encoding={name}: not a Python encoding; use e.g. latin-1, cp1250 or shift_jis"
            ) from None
    raise DamagedFileError(
        f"{file}: not text in {' or '.join(names)}; set dataset.encoding, e.g. cp1250 or shift_jis"
    )


def read_rows(
    file: Path, text: str, delimiter: str, by_time: bool
) -> tuple[str, list[str], list[Row], dict[str, str]]:
    """The delimiter, column names, rows, and a note on skipped lines.

    Blank lines are skipped; in a single column of times they are missing cells, except at the end.

    Raises:
        DamagedFileError: the file has no rows, a quote is wrong, or a row does not match the number
            of names.
    """
    lines = list(io.StringIO(text, newline=""))
    if lines and (stated := SEPARATOR.fullmatch(lines[0])):
        delimiter = stated[1]
        lines[0] = "\n"
    mark = find_delimiter(lines, (delimiter, *DELIMITERS)) or delimiter
    every = _parse(file, lines, mark)
    rows = _drop_comments([pair for pair in every if not _is_blank(pair[1])])
    if len(rows) < 2:
        content = "no line below the column names" if rows else "nothing"
        raise DamagedFileError(
            f"dataset.path={file.name}: the file has no rows: {file} contains {content}; choose another"
        )
    names = rows[0][1]
    rows = [(line, _cut_blanks(row, len(names))) for line, row in rows]
    if by_time and len(names) == 1:
        rows = _take_times(every, rows[0][0])
    facts = _describe_left_out(every, rows)
    del rows[0]
    if _has_row_names(names, [row for _, row in rows], lines[rows[-1][0] - 1]):
        names.insert(0, "")
    _check_widths(file, names, rows)
    return mark, [name.strip() for name in names], rows, facts


def _take_times(every: list[Row], first: int) -> list[Row]:
    """Lines of a single column from the first one, without blank ones at the end."""
    last = max(line for line, row in every if row == [""] or not _is_blank(row))
    return [(line, row or [""]) for line, row in every if first <= line <= last]


def _describe_left_out(every: list[Row], rows: list[Row]) -> dict[str, str]:
    """A note on comments and blank lines between the rows."""
    kept = {line for line, _ in rows}
    between = range(min(kept), max(kept))
    out = [line for line, row in every if line not in kept and (row or line in between)]
    text = f"{len(out)}, blank or comments, first at line {min(out, default=0)}"
    return {"lines left out": text} if out else {}


def _has_row_names(names: list[str], rows: list[list[str]], last: str) -> bool:
    """True if rows begin with a row name (quoted, or a running number) without a column name, as
    written by R; ``last`` is the last line."""
    is_named = last.startswith('"') or [row[:1] for row in rows] == [
        [str(i)] for i in range(1, len(rows) + 1)
    ]
    return is_named and {len(row) for row in rows} == {len(names) + 1}


def _check_widths(file: Path, names: list[str], rows: list[Row]) -> None:
    """Raise DamagedFileError unless every row has a cell for each name."""
    for line, row in rows:
        if len(row) != len(names):
            raise DamagedFileError(
                f"{file}, line {line}: {len(row)} cells for {len(names)} names; name every column "
                "in the first line, correct lines that differ, or set dataset.delimiter (a single "
                "column with decimal commas has ';')"
            )


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def _parse(file: Path, lines: list[str], mark: str) -> list[Row]:
    """Parse lines as CSV.  Raises DamagedFileError for an invalid quote."""
    reader = csv.reader(lines, delimiter=mark, strict=True, skipinitialspace=mark == " ")
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DamagedFileError(
            f"{file}, line {reader.line_num}: invalid CSV ({error}); correct its quotes, or set dataset.delimiter"
        ) from None


def _drop_comments(rows: list[Row]) -> list[Row]:
    """Rows without comments: lines that begin with # and differ in width from the first other line,
    or precede it if it contains no number."""
    other = [pair for pair in rows if pair[1][0][:1] != "#"]
    start, top = (other or rows or [(0, [""])])[0]
    has_number = any(map(is_number, top))
    return [
        (line, row)
        for line, row in rows
        if row[0][:1] != "#" or (len(row) == len(top) and (line >= start or has_number))
    ]


def _cut_blanks(row: list[str], width: int) -> list[str]:
    """A row without blank cells after the last column name (a delimiter at the end of the line)."""
    return row if "".join(row[width:]).strip() else row[:width]


def find_delimiter(lines: list[str], marks: Iterable[str]) -> str | None:
    """The first delimiter that splits lines without comments into a table; None if there is none."""
    lines = [line for line in lines if line.strip() and line[0] != "#"]
    for mark in marks:
        with suppress(csv.Error, ValueError):
            names, *rows = csv.reader(lines, delimiter=mark, skipinitialspace=mark == " ")
            widths = {len(_cut_blanks(row, len(names))) for row in rows}
            if len(names) > 1 and (
                widths == {len(names)} or _has_row_names(names, rows, lines[-1])
            ):
                return mark
    return None
