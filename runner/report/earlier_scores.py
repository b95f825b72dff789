"""Scores of an earlier report, or of another machine.

``runner report STUDY --with FILE`` adds them to the records here.

The file is the ``<study>_replicates.csv`` that every report writes: one line per table,
row, column, seed and replicate.  If a record here has the same seed and replicate, the
record takes precedence.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from runner.errors import ConfigError, nearest
from runner.study.definition import StudyDefinition
from runner.terminal.csv_cells import unescape_cell

HEADER = ["table", "row", "column", "data", "seed", "replicate", "score"]


@dataclass
class EarlierCell:
    """The scores of one row and column of a table."""

    data: str
    values: dict[tuple[int, int], float] = field(default_factory=dict)  # (seed, replicate) -> score
    doubted: bool = False  # a run behind it failed checks
    why: str = ""  # it is empty, or cannot be compared


EarlierScores = dict[tuple[str, str, str], EarlierCell]  # (table, row, column) -> cell


def read_earlier(paths: list[Path], study: StudyDefinition) -> EarlierScores:
    """The scores of all files together; of two that give the same replicate the later file counts.

    Raises:
        ConfigError: a file is missing or no such table, names a row or column that the study
            lacks, or scores of one cell come from different data.
    """
    tables = {spec.name: study.columns(spec) for spec in study.tables}
    rows = [row.name for row in study.rows]
    cells: EarlierScores = {}
    for path in paths:
        for number, line in _lines(path):
            where = f"--with {path}, line {number}"
            table = line["table"]
            row = line["row"]
            column = line["column"]
            if table not in tables:
                raise ConfigError(
                    f"{where}: table {table} is not one of {study.name}{nearest(table, tables)}"
                )
            if row not in rows:
                raise ConfigError(
                    f"{where}: row {row} is not one of {study.name}{nearest(row, rows)}"
                )
            if column not in tables[table]:
                raise ConfigError(
                    f"{where}: column {column} is not in table {table}{nearest(column, tables[table])}"
                )
            try:
                key, score = (int(line["seed"]), int(line["replicate"])), float(line["score"])
            except (TypeError, ValueError):
                raise ConfigError(
                    f"{where}: seed, replicate and score have to be numbers"
                ) from None
            cell = cells.setdefault((table, row, column), EarlierCell(line["data"]))
            if cell.data != line["data"]:
                raise ConfigError(
                    f"{where}: data {line['data']}, other lines of this cell have {cell.data}"
                )
            cell.values[key] = score
    return cells


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            meant = (
                {k: unescape_cell(v) if isinstance(v, str) else v for k, v in line.items()}
                for line in reader
            )
            lines = list(enumerate(meant, start=2))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"--with {path}: cannot be read ({why})") from None
    missing = [name for name in HEADER if name not in (reader.fieldnames or [])]
    if missing:
        raise ConfigError(
            f"--with {path}: has no column {missing[0]}; give the <study>_replicates.csv that runner report writes"
        )
    return lines
