"""Rows of a user's table with gaps among the inputs, counted or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from components.datasets.own.text_table import TextTable

GapRule = Literal["error", "drop", "impute", "keep"]
HANDLED: dict[GapRule, str] = {
    "drop": "left out",
    "impute": "imputed from the training rows: medians with an indicator, or the text 'missing'",
    "keep": "kept",
}


def apply_gap_rule(table: TextTable, inputs: Sequence[str], gaps: GapRule) -> TextTable:
    """Add the number of rows with gaps to the facts of a table, and drop these rows with
    ``drop``."""
    columns = {name: table.cells[name] for name in inputs if name in table.cells}
    counts = [f"{name} {cells.count(None):,}" for name, cells in columns.items() if None in cells]
    if gaps == "error" or not counts:
        return table
    complete_rows = [
        row for row, cells in enumerate(zip(*columns.values(), strict=True)) if None not in cells
    ]
    n = table.n_rows - len(complete_rows)
    facts = table.facts | {"rows with gaps": f"{n:,} ({', '.join(counts)}), {HANDLED[gaps]}"}
    return replace(table.take(complete_rows) if gaps == "drop" else table, facts=facts)
