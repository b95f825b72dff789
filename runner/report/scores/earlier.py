"""Scores of an earlier report, or of another machine.

``runner report STUDY --with FILE`` adds them to the records here.

The file is the ``<study>_replicates.csv`` that every report writes, or the same as Parquet:
one line per table, row, column, seed and replicate.  If a record here has the same seed and
replicate, the record takes precedence.  ``protocol`` is the hash of the protocol behind a
score (``runner.compose.protocol``); scores without one are shown as of an unknown protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.compose.protocol import UNKNOWN
from runner.errors import ConfigError, nearest
from runner.report.exchange.score_files import Line, ScoreFile, as_score_file, read_lines
from runner.study.definition import StudyDefinition

HEADER = ["table", "row", "column", "data", "seed", "replicate", "score"]
PROTOCOL = "protocol"  # a column that only files with known protocols have


@dataclass
class EarlierCell:
    """The scores of one row and column of a table."""

    data: str
    values: dict[tuple[int, int], float] = field(default_factory=dict)  # (seed, replicate) -> score
    doubted: bool = False  # a run behind it failed checks
    why: str = ""  # it is empty, or cannot be compared
    protocol: str = UNKNOWN  # hash of the protocol of all its scores


EarlierScores = dict[tuple[str, str, str], EarlierCell]  # (table, row, column) -> cell


def read_earlier(files: Sequence[Path | ScoreFile], study: StudyDefinition) -> EarlierScores:
    """The scores of all files together; of two that give the same replicate the later file counts.

    Raises:
        ConfigError: a file is missing or no such table, names a row or column that the study
            lacks, or scores of one cell come from different data or protocols.
    """
    tables = {spec.name: study.columns(spec) for spec in study.tables}
    rows = [row.name for row in study.rows]
    cells: EarlierScores = {}
    for file in map(as_score_file, files):
        for number, line in read_lines(file, HEADER):
            where = f"--with {file.label}, line {number}"
            _check_names(where, line, study.name, tables, rows)
            try:
                key, score = (int(line["seed"]), int(line["replicate"])), float(line["score"])
            except (TypeError, ValueError):
                raise ConfigError(
                    f"{where}: seed, replicate and score have to be numbers"
                ) from None
            protocol = line.get(PROTOCOL) or UNKNOWN
            cell = cells.setdefault(
                (line["table"], line["row"], line["column"]),
                EarlierCell(line["data"], protocol=protocol),
            )
            if cell.data != line["data"]:
                raise ConfigError(
                    f"{where}: data {line['data']}, other lines of this cell have {cell.data}"
                )
            if cell.protocol != protocol and UNKNOWN not in (cell.protocol, protocol):
                raise ConfigError(
                    f"{where}: protocol {protocol}, other lines of this cell have {cell.protocol}; "
                    "give files of one protocol (the same steps, data, settings and metric)"
                )
            if cell.protocol != protocol:  # of some scores it is not known
                cell.protocol = UNKNOWN
            cell.values[key] = score
    return cells


def _check_names(
    where: str, line: Line, study: str, tables: dict[str, list[str]], rows: list[str]
) -> None:
    """Refuse a table, row or column that the study lacks."""
    table = line["table"]
    row = line["row"]
    column = line["column"]
    if table not in tables:
        raise ConfigError(f"{where}: table {table} is not one of {study}{nearest(table, tables)}")
    if row not in rows:
        raise ConfigError(f"{where}: row {row} is not one of {study}{nearest(row, rows)}")
    if column not in tables[table]:
        raise ConfigError(
            f"{where}: column {column} is not in table {table}{nearest(column, tables[table])}"
        )
