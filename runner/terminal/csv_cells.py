"""Escaping of text in CSV files, because spreadsheets execute cells that begin with = + - @."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from runner.terminal.plain import plain

if TYPE_CHECKING:
    import pandas as pd

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
SPREADSHEET_TEXT_PREFIX = "'"  # prefix of spreadsheets for text that looks like a formula
T = TypeVar("T")


def escape_cell(cell: T) -> T | str:
    """Escape a cell: numbers are unchanged, text loses control characters and gets a prefix if a
    spreadsheet would execute it."""
    if not isinstance(cell, str):
        return cell
    if not cell.startswith(FORMULA_PREFIXES):
        return plain(cell)
    try:
        float(cell)
    except ValueError:
        return SPREADSHEET_TEXT_PREFIX + plain(cell)
    return cell


def unescape_cell(cell: str) -> str:
    """Inverse of ``escape_cell``."""
    return (
        cell[1:]
        if cell.startswith(SPREADSHEET_TEXT_PREFIX) and cell[1:].startswith(FORMULA_PREFIXES)
        else cell
    )


def escape_table(table: pd.DataFrame) -> pd.DataFrame:
    """Apply ``escape_cell`` to a table's headings and text columns; numbers stay unchanged."""
    out = table.copy()
    for name in out.columns:
        if out[name].dtype.kind == "O":
            out[name] = out[name].map(escape_cell)
    return out.rename(columns=escape_cell)
