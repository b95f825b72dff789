"""Rows of a user's table with gaps among the inputs: counted, left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from components.datasets.own.text_table import TextTable

GapRule = Literal["error", "drop", "impute", "keep"]
HANDLED: dict[GapRule, str] = {
    "drop": "left out",
    "impute": "imputed by the training rows: medians with an indicator, a text 'missing'",
    "keep": "kept",
}


def apply_gap_rule(table: TextTable, inputs: Sequence[str], gaps: GapRule) -> TextTable:
    """The table with the count of rows with gaps in its facts, and with ``drop`` without them."""
    columns = {name: table.cells[name] for name in inputs if name in table.cells}
    counts = [f"{name} {cells.count(None):,}" for name, cells in columns.items() if None in cells]
    if gaps == "error" or not counts:
        return table
    whole = [
        row for row, cells in enumerate(zip(*columns.values(), strict=True)) if None not in cells
    ]
    n = table.n_rows - len(whole)
    facts = table.facts | {"rows with gaps": f"{n:,} ({', '.join(counts)}), {HANDLED[gaps]}"}
    return replace(table.take(whole) if gaps == "drop" else table, facts=facts)
