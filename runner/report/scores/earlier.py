"""Scores of an earlier report, or of another machine.

``runner report STUDY --with FILE`` adds them to the records here.

The file is the ``<study>_replicates.csv`` that every report writes: one line per table, row,
column, seed and replicate.  If a record here has the same seed and replicate, the record takes
precedence.  ``protocol`` is the hash of the protocol behind a score
(``runner.study.protocol``); scores without one are shown as of an unknown protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import ConfigError, nearest
from runner.record.checks import Failures
from runner.statistics.paired_tests import ReplicateScores
from runner.study.definition import StudyDefinition
from runner.study.protocol import UNKNOWN
from runner.terminal.csv_cells import unescape_cell

if TYPE_CHECKING:
    import pandas as pd

PLACE = ["table", "row", "column"]
HEADER = [*PLACE, "data", "seed", "replicate", "score"]
PROTOCOL = "protocol"  # a column that only files with known protocols have


@dataclass
class EarlierCell:
    """The scores of one row and column of a table."""

    data: str
    values: ReplicateScores = field(default_factory=dict)  # (seed, replicate) -> score
    failed: Failures = field(default_factory=dict)  # checks that a run behind it failed
    why: str = ""  # it is empty, or cannot be compared
    protocol: str = UNKNOWN  # hash of the protocol of all its scores


EarlierScores = dict[tuple[str, str, str], EarlierCell]  # (table, row, column) -> cell


def read_earlier(files: Mapping[str, Path], study: StudyDefinition) -> EarlierScores:
    """The scores of all files together; of two that give the same replicate the later file counts.

    Args:
        files: paths by name for the user.
        study: the study that the scores belong to.

    Raises:
        ConfigError: a file is missing or no such table, names a row or column that the study
            lacks, or scores of one cell come from different data or protocols.
    """
    import pandas as pd

    columns = {spec.name: study.columns(spec) for spec in study.tables}
    rows = [row.name for row in study.rows]
    cells: EarlierScores = {}
    scores = [_read(name, path) for name, path in files.items()]
    if not scores:
        return cells
    for place, lines in pd.concat(scores).groupby(PLACE, sort=False):
        table, row, column = map(str, place)
        first = lines.index[0]
        _check_name(f"{first}: table {table}", f"one of {study.name}", table, columns)
        _check_name(f"{first}: row {row}", f"one of {study.name}", row, rows)
        _check_name(f"{first}: column {column}", f"in table {table}", column, columns[table])
        cells[table, row, column] = _make_cell(lines)
    return cells


def _read(name: str, path: Path) -> pd.DataFrame:
    """Lines of a file as texts, named for the user by the index."""
    import pandas as pd

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
        lines[PROTOCOL] = ""
    lines[PROTOCOL] = lines[PROTOCOL].replace("", UNKNOWN)
    lines.index = pd.Index([f"--with {name}, line {i}" for i in range(2, len(lines) + 2)])
    return lines.map(unescape_cell)


def _check_name(what: str, place: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ConfigError(f"{what} is not {place}{nearest(name, known)}")


def _make_cell(lines: pd.DataFrame) -> EarlierCell:
    """The cell of its lines.

    Raises:
        ConfigError: a line has no numbers, or lines have different data or protocols.
    """
    known = lines[lines[PROTOCOL] != UNKNOWN]
    for column, same in (("data", lines), (PROTOCOL, known)):
        first = next(iter(same[column]), "")
        for where, value in same.loc[same[column] != first, column].items():
            hint = "; give files of one protocol (the same steps, data, settings and metric)"
            raise ConfigError(
                f"{where}: {column} {value}, other lines of this cell have {first}"
                f"{hint if column == PROTOCOL else ''}"
            )
    cell = EarlierCell(lines["data"].iloc[0])
    if len(known) == len(lines):  # else the protocol of some scores is not known
        cell.protocol = known[PROTOCOL].iloc[0]
    numbers = lines[["seed", "replicate", "score"]]
    for where, (seed, replicate, score) in zip(lines.index, numbers.to_numpy(), strict=True):
        try:
            cell.values[int(seed), int(replicate)] = float(score)
        except ValueError:
            raise ConfigError(f"{where}: seed, replicate and score have to be numbers") from None
    return cell
