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


def read_rows(
    file: Path, text: str, delimiter: str, by_time: bool
) -> tuple[str, list[str], list[Row], dict[str, str]]:
    """The delimiter, names of columns, rows below them, and a fact about lines left out.

    Lines that begin with # are comments where they have another number of cells than the first
    other line, or are above it and it has no number.  Blank lines are left out; of a single column
    of times they are missing cells, but for those at the end.

    Raises:
        DamagedFileError: there is no row, a quote is wrong, or a row has another number of cells
            than there are names.
    """
    lines = list(io.StringIO(text, newline=""))
    if lines and (stated := SEPARATOR.fullmatch(lines[0])):
        delimiter = stated[1]
        lines[0] = "\n"
    names_and_rows = [line for line in lines if line.strip() and line[0] != "#"]
    mark = find_delimiter(names_and_rows, (delimiter, *DELIMITERS)) or delimiter
    reader = csv.reader(lines, delimiter=mark, strict=True, skipinitialspace=mark == " ")
    try:
        every = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DamagedFileError(
            f"{file}, line {reader.line_num}: no CSV file ({error}); repair its quotes, or set dataset.delimiter"
        ) from None
    filled = [(line, row) for line, row in every if len(row) > 1 or "".join(row).strip()]
    start, top = next((pair for pair in filled if pair[1][0][:1] != "#"), (0, []))
    is_row = any(map(is_number, top)) or not start
    rows = [
        (line, row)
        for line, row in filled
        if row[0][:1] != "#" or ((line > start or is_row) and len(row) == len(top or filled[0][1]))
    ]
    if len(rows) < 2:
        content = "no line after its names" if rows else "nothing"
        raise DamagedFileError(
            f"dataset.path={file.name}: the file is empty, {file} holds {content}; name another"
        )
    first, names = rows[0]
    if by_time and len(names) == 1:
        last = max(line for line, row in every if row and not row[0].isspace())
        rows = [(line, row or [""]) for line, row in every if first <= line <= last]
    kept = {line for line, _ in rows}
    left_out = [
        line for line, row in every if line not in kept and (row or first < line < max(kept))
    ]
    facts = (
        {"lines left out": f"{len(left_out)}, blank or comments, the first is line {left_out[0]}"}
        if left_out
        else {}
    )
    del rows[0]
    widths = {len(row) for _, row in rows}
    if widths == {len(names) + 1} and lines[rows[-1][0] - 1].startswith('"'):
        names = ["", *names]  # R names the rows, and not their column
    for line, row in rows:
        if len(row) != len(names):
            raise DamagedFileError(
                f"{file}, line {line}: {len(row)} cells under {len(names)} names; name every column in the first line, "
                "repair lines that differ, or set dataset.delimiter (a single column with decimal commas has ';')"
            )
    return mark, [name.strip() for name in names], rows, facts


def find_delimiter(lines: list[str], marks: Iterable[str]) -> str | None:
    """The first delimiter that makes a table of lines; None: none does."""
    for mark in marks:
        with suppress(csv.Error, ValueError):
            names, *rows = csv.reader(lines, delimiter=mark, skipinitialspace=mark == " ")
            more = {len(row) - len(names) for row in rows}
            if len(names) > 1 and more in ({0}, {lines[-1].startswith('"')}):
                return mark
    return None
