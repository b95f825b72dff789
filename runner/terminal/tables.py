"""Tables of words: drawn by rich on a terminal, tab-separated lines everywhere else (rich is
imported only to draw)."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.terminal.plain import plain_cell
from runner.terminal.streams import is_terminal

if TYPE_CHECKING:
    from rich.table import Column, Table


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table with the first column in bold and unbroken; piped, one line per row without title and
    header."""
    if not is_terminal(sys.stdout):
        for row in rows:
            print("\t".join(map(plain_cell, row)))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from runner.terminal.printer import out

    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for i, column in enumerate(header):
        table.add_column(column, style="bold" if i == 0 else None, overflow="fold", no_wrap=i == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def measure_words(table: Table) -> int:
    """Columns of a terminal below which a word of a table in a box would be cut."""
    return 1 + sum(_width_range(column)[0] + 3 for column in table.columns)


def _width_range(column: Column) -> tuple[int, int]:
    """Width of a column's longest word, and of its longest cell."""
    cells = [str(cell) for cell in (column.header, *column.cells)]
    words = [word for cell in cells for word in cell.split()]
    return max(map(len, words), default=0), max(map(len, cells))


def print_uncut(table: Table) -> None:
    """A table in a box with whole words; lines too wide for the terminal are broken by it."""
    from runner.terminal.printer import out

    needed = measure_words(table)
    spare = max(0, out.width - needed)
    for column in table.columns:
        least, most = _width_range(column)
        column.width = least + min(spare, most - least)
        spare -= column.width - least
    if needed > out.width:
        table.width = needed
    out.print(table, crop=False)


def print_json(rows: Iterable[Mapping[str, object]]) -> None:
    """Print the rows for ``--json``: one object per line.

    Values with no JSON form (a path, a time) are text, NaN is null.
    """
    for row in rows:
        print(json.dumps(to_json(row), ensure_ascii=False, default=str))


def to_json(value: Any) -> Any:
    """A value with the keys of its mappings as text, and null for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
