"""Tables of words: drawn by rich on a terminal, tab-separated lines everywhere else (rich is imported only to draw)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table with the first column in bold and unbroken; piped, one line per row without title and header."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(header):
        table.add_column(column, style="bold" if i == 0 else None, overflow="fold", no_wrap=i == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
