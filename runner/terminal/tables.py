"""Tables of text: drawn by rich on a terminal, tab-separated lines elsewhere (rich is imported only
to draw)."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from runner.terminal import json_lines
from runner.terminal.json_lines import FactName
from runner.terminal.plain import plain_cell
from runner.terminal.streams import is_terminal

Rows = Iterable[Sequence[str]]
Cells = Sequence[Sequence[str]]


def print_table(
    title: str,
    header: Sequence[str],
    rows: Rows,
    *,
    has_header_in_pipe: bool = False,
) -> None:
    """Print a table with the first column in bold and unbroken; in a pipe, one line per row without
    title, and without header unless requested.

    On a terminal that would break words, each row is a block: the first cell, then a line for each
    other column.
    """
    if json_lines.is_installed():
        names = list(map(column_key, header))
        named = {"table": title} if title else {}
        print_json(named | dict(zip_longest(names, row, fillvalue="")) for row in rows)
        return
    if not is_terminal(sys.stdout):
        for row in [header, *rows] if has_header_in_pipe else rows:
            print("\t".join(map(plain_cell, row)))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from runner.terminal.printer import out

    rows = [list(row) for row in rows]
    widths = fit_columns([list(header), *rows], out.width)
    if widths is None:
        _print_blocks(title, header, rows)
        return
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for i, width in enumerate(widths):
        name = header[i] if header else ""
        table.add_column(name, style="bold" if i == 0 else None, width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def column_key(heading: str) -> str:
    """Key of a column in the objects of a table."""
    return heading.strip().lower().replace(" ", "_")


def fit_columns(rows: Cells, width: int) -> list[int] | None:
    """Widths of columns with complete words, and complete cells in the first; None if too wide."""
    columns = list(zip_longest(*rows, fillvalue=""))
    ranges = [_width_range(cells) for cells in columns]
    if ranges:
        ranges[0] = (ranges[0][1], ranges[0][1])
    spare = width - sum(least for least, _ in ranges) - 3 * len(ranges)
    return None if spare < 0 else _share(ranges, spare)


def _width_range(cells: Iterable[str]) -> tuple[int, int]:
    """Widths of a column's longest word and longest cell."""
    from rich.cells import cell_len

    cells = list(cells)
    words = " ".join(cells).split()
    return max(map(cell_len, words), default=0), max(map(cell_len, cells), default=0)


def _share(ranges: Sequence[tuple[int, int]], spare: int) -> list[int]:
    """Widths between minimum and maximum of each column; wide columns share the remaining space."""
    widths = [least for least, _ in ranges]
    by_need = sorted(range(len(ranges)), key=lambda i: ranges[i][1] - ranges[i][0])
    for n_before, i in enumerate(by_need):
        least, most = ranges[i]
        extra = min(most - least, spare // (len(ranges) - n_before))
        widths[i] += extra
        spare -= extra
    return widths


def _print_blocks(title: str, header: Sequence[str], rows: Rows) -> None:
    from rich.text import Text

    from runner.terminal.printer import out

    if title:
        out.print(Text(title, "italic"))
    names = [f"{name}  " for name in header[1:]] or [""]
    indent = 2 + max(map(len, names))
    for first, *others in rows:
        out.print(Text(first, "bold"))
        for name, cell in zip_longest(names, others, fillvalue=""):
            if cell:
                print_fact(f"  {name}".ljust(indent), cell)


def print_fact(head: str, text: str) -> None:
    """Print text after a head, formatted by ``indent_below``."""
    print(indent_below(head, text))


def print_named(name: FactName, value: object) -> None:
    """Print a value after its name, or an object with this key for ``--json``."""
    if json_lines.is_installed():
        print_json([{name: value}])
    else:
        print_fact(f"{name:<8} ", str(value))


def print_marked(mark: str, colour: str, head: str, text: str) -> None:
    """Print a coloured word, a head and text."""
    from rich.text import Text

    from runner.terminal.printer import out

    line = Text(indent_below(mark + head, text))
    line.stylize(colour, 0, len(mark))
    out.print(line, soft_wrap=True)


def columns_of_terminal() -> int | None:
    """Width of the terminal; None without a terminal, so that lines are not wrapped."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def indent_below(head: str, text: str) -> str:
    """Text after a head, with wrapped lines indented by the width of the head on a terminal."""
    width = columns_of_terminal()
    if width is None:
        return head + text
    return textwrap.fill(
        head + text,
        width,
        subsequent_indent=" " * min(len(head), width // 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def measure_words(cells: Cells) -> int:
    """Smallest width of a terminal that does not cut words of a table in a box."""
    return 1 + sum(3 + _width_range(column)[0] for column in zip(*cells, strict=True))


def print_boxed(cells: Cells, width: int) -> None:
    """Print a table in a box without cutting words; the row ``all`` is bold.

    A wider table is printed in parts, each with the first column, columns that fit, and the rows with
    a cell in one of them; a part of a single column may be wider.

    Args:
        cells: the header, then the rows.
        width: largest number of columns of the terminal.
    """
    from rich.table import Table

    from runner.terminal.printer import out

    first, *others = zip(*cells, strict=True)
    while others:
        n = len(others)
        while n > 1 and measure_words(list(zip(first, *others[:n], strict=True))) > width:
            n -= 1
        part = [row for row in zip(first, *others[:n], strict=True) if any(row[1:])]
        others = others[n:]
        needed = measure_words(part)
        ranges = [_width_range(column) for column in zip(*part, strict=True)]
        widths = _share(ranges, max(0, width - needed))
        table = Table()
        for name, n_columns in zip(part[0], widths, strict=True):
            table.add_column(name, justify="right" if name else "left", width=n_columns)
        for row in part[1:]:
            table.add_row(*row, style="bold" if row[0] == "all" else None)
        out.print(table, crop=False, width=max(needed, width))


def print_json(rows: Iterable[Mapping[Any, object]]) -> None:
    """Print the rows for ``--json``: one object per line.

    Values without a JSON form (a path, a time) become strings, and NaN becomes null.
    """
    for row in rows:
        print(json.dumps(to_json(row), ensure_ascii=False, default=str))


def to_json(value: Any) -> Any:
    """Convert a value for JSON: keys to strings, numbers that are not finite to null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value
