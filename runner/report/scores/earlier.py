"""Scores of an earlier report, or of another machine.

``runner report STUDY --with FILE`` adds them to the records here.

The file is the ``<study>_replicates.csv`` that every report writes: one line per table, row,
column, seed and replicate.  If a record here has the same seed and replicate, the record takes
precedence.  ``protocol`` is the hash of a score's protocol (``runner.study.protocol``); scores without
one have an unknown protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from runner.errors import ConfigError, nearest
from runner.study.definition import StudyDefinition
from runner.study.protocol import UNKNOWN
from runner.terminal.csv_cells import unescape_cell

PLACE = ["table", "row", "column"]
NUMBERS = {"seed": int, "replicate": int, "score": float}
HEADER = [*PLACE, "data", *NUMBERS]
WHOLE = -1  # seed and replicate of a line for all replicates
PROTOCOL = "protocol"  # column of files with known protocols
NO_SCORES = pd.DataFrame(columns=[*HEADER, PROTOCOL])


def read_earlier(files: Mapping[str, Path], study: StudyDefinition) -> pd.DataFrame:
    """Scores of all files, with the columns of the files; if two files have the same replicate, the
    later file counts.

    Args:
        files: paths by displayed name.
        study: study of the scores.

    Raises:
        ConfigError: a file is missing or invalid, has an unknown row or column, a line has no
            numbers, or lines of one cell have different data or protocols.
    """
    if not files:
        return NO_SCORES
    lines = pd.concat([_read(name, path) for name, path in files.items()])
    columns = {spec.name: study.columns(spec) for spec in study.tables}
    rows = [row.name for row in study.rows]
    for where, *place in lines.drop_duplicates(PLACE)[PLACE].itertuples(name=None):
        table, row, column = map(str, place)
        _check_name(f"{where}: table {table}", f"one of {study.name}", table, columns)
        _check_name(f"{where}: row {row}", f"one of {study.name}", row, rows)
        _check_name(f"{where}: column {column}", f"in table {table}", column, columns[table])
    stated = lines[lines[PROTOCOL] != UNKNOWN]
    _check_same(lines, "data")
    _check_same(
        stated, PROTOCOL, "; give files of one protocol (the same steps, data, settings and metric)"
    )
    numbers = lines[[*NUMBERS]]
    is_number = numbers.apply(pd.to_numeric, errors="coerce").notna() | (numbers == "nan")
    for where in lines.index[~is_number.all(axis=1)]:
        raise ConfigError(f"{where}: seed, replicate and score must be numbers")
    is_known = lines.groupby(PLACE)[PROTOCOL].transform("min") != UNKNOWN  # of all lines of a cell
    lines[PROTOCOL] = lines[PROTOCOL].where(is_known, UNKNOWN)
    return lines.astype(NUMBERS).drop_duplicates([*PLACE, "seed", "replicate"], keep="last")


def _check_name(what: str, place: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ConfigError(f"{what} is not {place}{nearest(name, known)}")


def _check_same(lines: pd.DataFrame, column: str, hint: str = "") -> None:
    """Refuse lines of one cell that differ in a column."""
    first = lines.groupby(PLACE)[column].transform("first")
    pairs = pd.DataFrame({"own": lines[column], "first": first})
    for where, protocol, other in pairs[lines[column] != first].itertuples(name=None):
        raise ConfigError(
            f"{where}: {column} {protocol}, but other lines of this cell have {other}{hint}"
        )


def _read(name: str, path: Path) -> pd.DataFrame:
    """Lines of a file as strings; the index has their displayed names."""
    try:
        lines = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False).fillna("")
    except ValueError:
        raise ConfigError(f"--with {name}: cannot be read (no table)") from None
    for column in HEADER:
        if column not in lines:
            raise ConfigError(
                f"--with {name}: has no column {column}; give the <study>_replicates.csv that runner report writes"
            )
    if PROTOCOL not in lines:
        lines[PROTOCOL] = UNKNOWN
    lines.index = pd.Index([f"--with {name}, line {i}" for i in range(2, len(lines) + 2)])
    return lines.map(unescape_cell)
