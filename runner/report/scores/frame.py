"""Scores of a study's tables as tidy frames, for the figures and files of a report."""

from __future__ import annotations

import pandas as pd

from runner.report.scores.cells import Cell, TableLayout
from runner.report.scores.earlier import WHOLE

SCORES = [
    "table",
    "row",
    "column",
    "metric",
    "seed",
    "replicate",
    "score",
    "state",
    "protocol",
    "data",
]
CELLS = [
    "table",
    "key",
    "metric",
    "row",
    "column",
    "seed",
    "replicate",
    "score",
    "state",
    "mean",
    "se",
    "is_partial",
]
OTHER_PROTOCOL = "other protocol"  # state of scores that are not compared


def scores_frame(tables: list[TableLayout]) -> pd.DataFrame:
    """One row per replicate, in the order of the tables."""
    lines = [
        (
            laid.spec.name,
            cell.row.name,
            cell.column,
            laid.spec.column_metric(cell.column),
            *key,
            score,
            _state(cell),
            cell.protocol,
            cell.data,
        )
        for laid in tables
        for cell in laid.cells
        for key, score in sorted(cell.values.items())
    ]
    return pd.DataFrame(lines, columns=SCORES).astype({"score": float})


def cells_frame(tables: list[TableLayout]) -> pd.DataFrame:
    """One row per cell with scores: ``score`` is the centre used in the table, ``key`` the grid key
    of its columns, ``is_partial`` true if replicates are missing."""
    lines = [
        (
            laid.spec.name,
            laid.spec.columns if laid.spec.metric else "",
            laid.spec.metric,
            cell.row.name,
            cell.column,
            WHOLE,
            WHOLE,
            centre[0],
            _state(cell),
            summary.mean,
            summary.se,
            "so far" in cell.reason,
        )
        for laid in tables
        for cell in laid.cells
        if (centre := cell.centre(laid.spec)) and (summary := cell.summary)
    ]
    numbers = dict.fromkeys(("score", "mean", "se"), float)
    return pd.DataFrame(lines, columns=CELLS).astype({**numbers, "is_partial": bool})


def _state(cell: Cell) -> str:
    if cell.other_protocol:
        return OTHER_PROTOCOL
    return "smoke" if cell.smoke else "doubted" if cell.failed else "done"
