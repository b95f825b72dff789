"""Words in a CSV file: a spreadsheet takes one that begins with = + - @ for a formula, and would run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from runner.terminal.plain import plain

if TYPE_CHECKING:
    import pandas as pd

FORMULA = ("=", "+", "-", "@", "\t", "\r")
MARK = "'"  # what spreadsheets themselves put before a word that is none
T = TypeVar("T")


def as_word(cell: T) -> T | str:
    """A cell as it is written: a number as it is, a word without control characters, and with a mark before it where a
    spreadsheet would run it."""
    if not isinstance(cell, str):
        return cell
    if not cell.startswith(FORMULA):
        return plain(cell)
    try:
        float(cell)
    except ValueError:
        return MARK + plain(cell)
    return cell


def as_meant(cell: str) -> str:
    """A cell as it was before ``as_word``."""
    return cell[1:] if cell.startswith(MARK) and cell[1:].startswith(FORMULA) else cell


def table_as_words(table: pd.DataFrame) -> pd.DataFrame:
    """Apply ``as_word`` to a table's headings and text columns; numbers stay unchanged."""
    out = table.copy()
    for name in out.columns:
        if out[name].dtype.kind == "O":
            out[name] = out[name].map(as_word)
    return out.rename(columns=as_word)
