"""CSV files of a report: every cell, and every replicate's score."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.compose.protocol import UNKNOWN
from runner.disk.atomic import replace_file
from runner.report.scores.cells import TableLayout
from runner.report.scores.earlier import HEADER, PROTOCOL
from runner.terminal.csv_cells import escape_cell


@contextmanager
def _open_csv(path: Path) -> Iterator[Any]:
    """Writer of a file that replaces the one at a path."""
    with replace_file(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        yield csv.writer(file)


def write_numbers(tables: list[TableLayout], path: Path) -> None:
    """Every cell as one line of CSV, with full precision."""
    with _open_csv(path) as writer:
        writer.writerow(
            [
                "table",
                "row",
                "model",
                "published row",
                "settings",
                "column",
                "metric",
                "published",
                "published mean",
                "published SE",
                "mean",
                "SE",
                "n",
                "lost",
                "best",
                "difference in SE",
                "verdict",
                "why",
                "data",
                "paired difference",
                "its SE",
                "pairs",
                "p",
                "p, Holm",
                "p McNemar",
                "runs",
                "smoke",
            ]
        )
        for laid in tables:
            for c in laid.cells:
                s = c.summary
                n = c.number
                pair = c.against
                line = [
                    laid.spec.name,
                    c.row.name,
                    c.row.model,
                    c.row.published_label,
                    c.row.preset,
                    c.column,
                    laid.spec.column_metric(c.column),
                    *((n.text, n.mean, n.se) if n else ("",) * 3),
                    *((s.mean, s.se, s.n, s.lost) if s else ("",) * 4),
                    int(c.bold),
                    c.verdict.in_se,
                    c.verdict.word,
                    c.verdict.why,
                    c.data,
                    *(
                        (pair.difference, pair.se, pair.n, pair.p, pair.p_holm)
                        if pair
                        else ("",) * 5
                    ),
                    c.by_label.p if c.by_label else "",
                    " ".join(f"{f.parent.name}/{f.name}" for f in c.folders),
                    int(c.smoke),
                ]
                writer.writerow(map(escape_cell, line))


def write_replicates(tables: list[TableLayout], path: Path) -> None:
    """Every replicate's score as one line of CSV, which ``--with`` reads.

    It has a column of protocols if one is known.
    """
    cells = [(laid.spec.name, cell) for laid in tables for cell in laid.cells]
    has_protocols = any(cell.protocol != UNKNOWN and cell.values for _, cell in cells)
    with _open_csv(path) as writer:
        writer.writerow([*HEADER, PROTOCOL] if has_protocols else HEADER)
        for table, c in cells:
            for key, score in sorted(c.values.items()):
                values = [table, c.row.name, c.column, c.data, *key, score]
                protocol = [c.protocol] if has_protocols else []
                writer.writerow(map(escape_cell, [*values, *protocol]))
