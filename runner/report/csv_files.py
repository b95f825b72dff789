"""CSV files of a report: every cell, and every replicate's score."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.disk.atomic import replace_file
from runner.record.folders import name_run
from runner.report.scores.cells import Cell, TableLayout
from runner.report.scores.earlier import HEADER, PROTOCOL
from runner.report.scores.frame import scores_frame
from runner.study.protocol import UNKNOWN
from runner.terminal.csv_cells import escape_cell

# headings of cells, and where a cell holds their values; those of table, metric and runs are set apart
COLUMNS = {
    "table": "row.name",
    "row": "row.name",
    "model": "row.model",
    "published row": "row.published_label",
    "settings": "row.preset",
    "column": "column",
    "metric": "column",
    "published": "number.text",
    "published mean": "number.mean",
    "published SE": "number.se",
    "mean": "summary.mean",
    "SE": "summary.se",
    "n": "summary.n",
    "lost": "summary.lost",
    "best": "bold",
    "difference in SE": "verdict.in_se",
    "verdict": "verdict.word",
    "why": "verdict.why",
    "data": "data",
    "paired difference": "against.difference",
    "its SE": "against.se",
    "pairs": "against.n",
    "p": "against.p",
    "p, Holm": "against.p_holm",
    "p McNemar": "by_label.p",
    "runs": "folders",
    "smoke": "smoke",
}


def _write(path: Path, header: Sequence[str], lines: Sequence[Mapping[Any, Any]]) -> Path:
    """Write the columns of a header to a file, replacing it."""
    with replace_file(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([escape_cell(line[name]) for name in header] for line in lines)
    return path


def write_numbers(tables: list[TableLayout], path: Path) -> Path:
    """Write each cell as a line of CSV with full precision; return the path."""
    lines = [_describe_cell(laid, cell) for laid in tables for cell in laid.cells]
    return _write(path, list(lines[0]) if lines else (), lines)


def _describe_cell(laid: TableLayout, cell: Cell) -> dict[str, Any]:
    return {heading: _read(cell, path) for heading, path in COLUMNS.items()} | {
        "table": laid.spec.name,
        "metric": laid.spec.column_metric(cell.column),
        "runs": " ".join(map(name_run, cell.folders)),
    }


def _read(cell: Cell, path: str) -> Any:
    """Value at a path of attributes; None if a part of the cell is missing."""
    value: Any = cell
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return int(value) if isinstance(value, bool) else value


def write_replicates(tables: list[TableLayout], path: Path) -> Path:
    """Write each replicate's score as a line of CSV, the input of ``--with``; return the path.

    There is a column of protocols if any is known.
    """
    scores = scores_frame(tables)
    protocol = [PROTOCOL] if (scores["protocol"] != UNKNOWN).any() else []
    return _write(path, [*HEADER, *protocol], scores.to_dict("records"))
