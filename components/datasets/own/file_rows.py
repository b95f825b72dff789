"""Text of a file as rows of cells: its encoding, delimiter, comment lines and blank lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from components.datasets.own.number_marks import is_number
from components.errors import ConfigMismatchError, DamagedFileError

Row = tuple[int, list[str]]  # line of the file, and cells
DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'", " ": "blanks"}
SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # first line of a file of Excel
COMMENTS = ("#", "%")
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class FileRows:
    """Rows of a file below the names of their columns, by one delimiter."""

    delimiter: str
    names: list[str]
    rows: list[Row]  # with blank lines between them, none at the end
    n_comments: int  # lines left out

    @property
    def ragged(self) -> Row | None:
        """The first row with another number of cells than the names."""
        width = len(self.names)
        rows = (row for row in self.rows if not _is_blank(row[1]))
        return next((row for row in rows if len(row[1]) != width), None)

    @property
    def is_table(self) -> bool:
        return len(self.names) > 1 and self.ragged is None

    def describe_delimiter(self, given: str) -> dict[str, str]:
        """The delimiter, where it is not the given one."""
        mark = self.delimiter
        return {} if mark == given else {"delimiter": DELIMITERS.get(mark, f"'{mark}'")}

    def drop_blank(self, by_time: bool) -> tuple[list[Row], dict[str, str]]:
        """Rows without blank lines, and the numbers of lines left out; with ``by_time`` the blank
        lines of a single column are missing cells."""
        facts = {"comment lines": f"{self.n_comments} left out"} if self.n_comments else {}
        blank = [line for line, row in self.rows if _is_blank(row)]
        if not blank:
            return self.rows, facts
        if by_time and len(self.names) == 1:
            facts["blank lines"] = f"{len(blank)}, missing values"
            return [(line, row or [""]) for line, row in self.rows], facts
        facts["blank lines"] = f"{len(blank)} left out, the first is line {blank[0]}"
        return [(line, row) for line, row in self.rows if not _is_blank(row)], facts


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not any(cell.strip() for cell in row)


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


def split_cells(file: Path, text: str, delimiter: str) -> FileRows:
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
        if mark != " " or all(len(table.names) < 2 for table in tables.values()):
            try:
                tables[mark] = _read_rows(file, lines, mark)
            except DamagedFileError as error:
                errors.append(error)
    table = next((table for table in tables.values() if table.is_table), tables.get(delimiter))
    if table is None:
        raise errors[0]
    if table.ragged and len(table.names) == 1 and ";" in tables:
        alone = tables[";"]  # lines of one number with a decimal comma
        if all("," not in cell or is_number(cell) for _, row in alone.rows for cell in row):
            table = alone
    if all(_is_blank(row) for _, row in table.rows):
        content = "no line after its names" if table.names else "nothing"
        raise DamagedFileError(
            f"dataset.path={file.name}: the file is empty, {file} holds {content}; name another"
        )
    if (wrong := table.ragged) is not None:
        widths = {len(row) for _, row in table.rows if not _is_blank(row)}
        fix = (
            "repair the line, or set dataset.delimiter"
            if len(widths) > 1
            else "name every column in the first line, delete a title above the names, or set dataset.delimiter"
        )
        raise DamagedFileError(
            f"{file}, line {wrong[0]}: {len(wrong[1])} cells under {len(table.names)} names; {fix}"
        )
    return table


def _read_rows(file: Path, lines: list[str], mark: str) -> FileRows:
    """Raises DamagedFileError: a quote is wrong."""
    by_blanks = mark == " "
    reader = csv.reader(
        (line.rstrip() + "\n" for line in lines) if by_blanks else lines,
        delimiter=mark,
        strict=True,
        skipinitialspace=by_blanks,
    )
    try:
        every = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DamagedFileError(
            f"{file}, line {reader.line_num}: no CSV file ({error}); repair its quotes, or set dataset.delimiter"
        ) from None
    rows = _drop_comments(every)
    n_comments = len(every) - len(rows)
    while rows and rows[-1][1] != [""] and _is_blank(rows[-1][1]):
        rows.pop()
    while rows and _is_blank(rows[0][1]):
        del rows[0]
    if not rows:
        return FileRows(mark, [], [], n_comments)
    names = [name.strip() for name in rows[0][1]]
    # R writes the names of rows in quotes, and no name for them
    is_quoted = all(lines[line - 1].startswith('"') for line, row in rows if not _is_blank(row))
    if is_quoted and {len(row) for _, row in rows[1:] if not _is_blank(row)} == {len(names) + 1}:
        names = ["", *names]
    return FileRows(mark, names, rows[1:], n_comments)


def _drop_comments(rows: list[Row]) -> list[Row]:
    """Rows without comments: lines that begin with # or %, but for the names and for rows with as
    many cells.

    A line above may hold the names itself: it does where the next one has a number, or where no
    number tells names from rows.
    """
    comments = [k for k, (_, row) in enumerate(rows) if row and row[0].startswith(COMMENTS)]
    texts = [k for k, (_, row) in enumerate(rows) if k not in comments and not _is_blank(row)]
    if not comments or not texts:
        return rows
    first, second = (rows[k][1] for k in (texts[0], texts[:2][-1]))
    alike = [k for k in comments if len(rows[k][1]) == len(first)]
    above = [k for k in alike if k < texts[0]]
    kept = [k for k in alike if k > texts[0]]
    if any(map(is_number, first)) or not any(map(is_number, second)):
        kept += above[-1:]
    dropped = set(comments) - set(kept)
    return [row for k, row in enumerate(rows) if k not in dropped]
