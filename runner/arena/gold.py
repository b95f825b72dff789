"""Predictions of a suite's gold row, kept as data: what the predictions of other rows are
measured against.

``conf/arena/<suite>.gold.csv.gz`` has a line for each test row of a problem: the label, and mean
and standard deviation of the gold row's predictive, in the units of the labels.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.metrics.predictive_distance import predictive_distances
from runner.arena.suite import GROUP, Suite
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.report.scores.distances import read_predictions
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import DISTANCES

COLUMNS = ["label", "mean", "sd"]
Predictions = Mapping[str, NDArray[np.float64]]  # each of the columns [test rows]


@dataclass(frozen=True)
class Gold:
    """Predictions of the gold row by problem."""

    problems: Mapping[str, Predictions]

    def distances(self, problem: str, folder: Path, replicate: int) -> dict[str, float]:
        """``predictive_distances`` of what a replicate has predicted; nothing where either has no
        predictions, or they are of other labels."""
        theirs = self.problems.get(problem)
        ours = read_predictions(folder, replicate)
        if theirs is None or ours is None or len(ours["label"]) != len(theirs["label"]):
            return {}
        if not np.allclose(ours["label"], theirs["label"]):
            return {}
        return predictive_distances(ours["mean"], ours["sd"], theirs["mean"], theirs["sd"])


def file_of(suite: Suite) -> Path | None:
    """Where a suite's gold predictions are, or would be; None: the suite has no distances."""
    beside = conf_folders.find(GROUP, suite.name)
    if beside is None or not DISTANCES & set(suite.metrics):
        return None
    return beside.with_name(f"{suite.name}.gold.csv.gz")


def load_gold(suite: Suite) -> Gold:
    """The kept predictions of a suite, empty where there are none.

    Raises:
        ConfigError: the file is damaged.
    """
    path = file_of(suite)
    return Gold(_read(path, path.stat().st_mtime_ns) if path and path.is_file() else {})


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> dict[str, Predictions]:
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"problem": str}, float_precision="round_trip")
        groups = table.astype(dict.fromkeys(COLUMNS, float)).groupby("problem", sort=False)
        return {str(p): {name: rows[name].to_numpy() for name in COLUMNS} for p, rows in groups}
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({error}); put back the file that was there"
        ) from None


def keep_gold(suite: Suite, snapshot: Snapshot) -> int:
    """Writes what the gold row's runs of a study have predicted, over what was kept of the same
    problems: the number of problems.  A cell of the study has a problem's name as its value."""
    import pandas as pd

    path = file_of(suite)
    gold = [run for run in snapshot.runs if run.row == suite.gold]
    found = {str(p): _predicted(snapshot, run) for run in gold for p in run.cell.values()}
    new = {p: values for p, values in found.items() if values is not None and p in suite.problems}
    if path is None or not new:
        return 0
    problems = {**load_gold(suite).problems, **new}
    tables = {p: pd.DataFrame(problems[p], columns=COLUMNS) for p in sorted(problems)}
    table = pd.concat(tables, names=["problem", ""]).reset_index("problem")
    text = table.to_csv(index=False, float_format="%.8g", lineterminator="\n")
    write_bytes(path, gzip.compress(text.encode(), 9, mtime=0))
    return len(new)


def _predicted(snapshot: Snapshot, run: FrozenRun) -> Predictions | None:
    facts = snapshot.facts(run)
    is_done = facts is not None and facts["state"] == "done"
    return read_predictions(snapshot.folder(run), 0) if is_done else None
