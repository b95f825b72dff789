"""CSV files of a report: every cell, and every replicate's score."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.disk.atomic import replace_file
from runner.report.scores.cells import Cell, TableLayout
from runner.report.scores.earlier import HEADER, PROTOCOL
from runner.report.scores.frame import scores_frame
from runner.study.protocol import UNKNOWN
from runner.terminal.csv_cells import escape_cell


def _write(path: Path, header: Sequence[str], lines: Sequence[Mapping[Any, Any]]) -> Path:
    """Write the columns of a header to a file, replacing it."""
    with replace_file(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([escape_cell(line[name]) for name in header] for line in lines)
    return path


def write_numbers(tables: list[TableLayout], path: Path) -> Path:
    """Write each cell as a line of CSV with full precision; returns the path."""
    lines = [_describe_cell(laid, cell) for laid in tables for cell in laid.cells]
    return _write(path, list(lines[0]) if lines else (), lines)


def _describe_cell(laid: TableLayout, cell: Cell) -> dict[str, Any]:
    number, summary, pair = (
        vars(part) if part else {} for part in (cell.number, cell.summary, cell.against)
    )
    return {
        "table": laid.spec.name,
        "row": cell.row.name,
        "model": cell.row.model,
        "published row": cell.row.published_label,
        "settings": cell.row.preset,
        "column": cell.column,
        "metric": laid.spec.column_metric(cell.column),
        "published": number.get("text"),
        "published mean": number.get("mean"),
        "published SE": cell.number and cell.number.se,
        "mean": summary.get("mean"),
        "SE": summary.get("se"),
        "n": summary.get("n"),
        "lost": summary.get("lost"),
        "best": int(cell.bold),
        "difference in SE": cell.verdict.in_se,
        "verdict": cell.verdict.word,
        "why": cell.verdict.why,
        "data": cell.data,
        "paired difference": pair.get("difference"),
        "its SE": pair.get("se"),
        "pairs": pair.get("n"),
        "p": pair.get("p"),
        "p, Holm": pair.get("p_holm"),
        "p McNemar": cell.by_label and cell.by_label.p,
        "runs": " ".join(f"{f.parent.name}/{f.name}" for f in cell.folders),
        "smoke": int(cell.smoke),
    }


def write_replicates(tables: list[TableLayout], path: Path) -> Path:
    """Write each replicate's score as a line of CSV, the input of ``--with``; returns the path.

    There is a column of protocols if any is known.
    """
    scores = scores_frame(tables)
    protocol = [PROTOCOL] if (scores["protocol"] != UNKNOWN).any() else []
    return _write(path, [*HEADER, *protocol], scores.to_dict("records"))
