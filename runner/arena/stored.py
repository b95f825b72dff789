"""Data of suites next to their YAML: kept scores and predictions, as compressed CSV.

``conf/arena/<suite>.gold.csv.gz`` has the predictions of the gold row, the reference for the
predictions of other rows: a line for each test row of a problem with the label, and mean and
standard deviation of the gold row's predictive distribution, in the units of the labels.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from runner.arena.suite import GROUP, Suite
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.report.scores.distances import PREDICTIONS, read_predictions
from runner.study.snapshot import Snapshot

COLUMNS = ["problem", *PREDICTIONS]
ENDING = "gold.csv.gz"
DIGITS = 8


def stored_file(name: str | None, ending: str = "csv.gz") -> Path | None:
    """Path for the data of a suite; None if the suite has no YAML."""
    path = conf_folders.find(GROUP, name) if name else None
    return path and path.with_name(f"{name}.{ending}")


def read_stored(
    path: Path, types: Mapping[str, type], check: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Validated content of a file with the given column types; numbers have full precision.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        table = pd.read_csv(
            path,
            dtype=types,
            na_values=["", "nan"],
            keep_default_na=False,
            float_precision="round_trip",
        )
        return check(table)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); restore the original file") from None


def write_stored(table: pd.DataFrame, digits: int, path: Path) -> None:
    """Write a file, with ``digits`` significant digits; equal tables give identical bytes."""
    text = table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    write_bytes(path, gzip.compress(text.encode(), 9, mtime=0))


def load_gold(suite: Suite) -> pd.DataFrame:
    """Kept predictions of a suite (problem, label, mean, sd); empty if there are none.

    Raises:
        ConfigError: the file is damaged.
    """
    path = stored_file(suite.name, ENDING)
    if path is None or not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    types = dict.fromkeys(PREDICTIONS, float)
    return read_stored(path, {"problem": str}, lambda table: table[COLUMNS].astype(types))


def keep_gold(suite: Suite, snapshot: Snapshot) -> int:
    """Write the predictions of the gold row's runs, replacing stored predictions of the same
    problems; return the number of problems.

    The value of each cell of the study is the name of a problem."""
    path = stored_file(suite.name, ENDING)
    new = {
        problem: predictions.assign(problem=problem)
        for run in snapshot.runs
        if run.row == suite.gold and snapshot.state(run) == "done"
        for problem in suite.problems.keys() & set(map(str, run.cell.values()))
        if len(predictions := read_predictions(snapshot.folder(run), 0))
    }
    if path is None or not new:
        return 0
    kept = load_gold(suite)
    table = pd.concat([kept[~kept["problem"].isin([*new])], *new.values()])[COLUMNS]
    write_stored(table.sort_values("problem", kind="stable"), DIGITS, path)
    return len(new)
