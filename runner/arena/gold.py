"""Stored predictions of a suite's gold row: the reference for the predictions of other rows.

``conf/arena/<suite>.gold.csv.gz`` has a line for each test row of a problem: the label, and mean
and standard deviation of the gold row's predictive, in the units of the labels.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

import pandas as pd

from runner.arena.suite import GROUP, Suite
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.report.scores.distances import PREDICTIONS, read_predictions
from runner.study.snapshot import Snapshot
from runner.study.table_specs import DISTANCES

COLUMNS = ["problem", *PREDICTIONS]


def file_of(suite: Suite) -> Path | None:
    """Where a suite's gold predictions are, or would be; None: the suite has no distances."""
    beside = conf_folders.find(GROUP, suite.name)
    if beside is None or not DISTANCES & set(suite.metrics):
        return None
    return beside.with_name(f"{suite.name}.gold.csv.gz")


def load_gold(suite: Suite) -> pd.DataFrame:
    """The kept predictions of a suite, empty where there are none: problem, label, mean, sd.

    Raises:
        ConfigError: the file is damaged.
    """
    path = file_of(suite)
    if path is None or not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype={"problem": str}, float_precision="round_trip")
        return table[COLUMNS].astype(dict.fromkeys(PREDICTIONS, float))
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({error}); put back the file that was there"
        ) from None


def keep_gold(suite: Suite, snapshot: Snapshot) -> int:
    """Write the predictions of the gold row's runs, replacing stored ones of the same problems.

    A cell of the study has a problem's name as its value.  Returns: the number of problems."""
    path = file_of(suite)
    new = {
        str(problem): read_predictions(snapshot.folder(run), 0)
        for run in snapshot.runs
        for problem in run.cell.values()
        if run.row == suite.gold and (snapshot.facts(run) or {}).get("state") == "done"
    }
    new = {p: each for p, each in new.items() if len(each) and p in suite.problems}
    if path is None or not new:
        return 0
    kept = load_gold(suite)
    parts = [each.assign(problem=p) for p, each in new.items()]
    table = pd.concat([kept[~kept["problem"].isin([*new])], *parts])[COLUMNS]
    text = table.sort_values("problem", kind="stable").to_csv(
        index=False, float_format="%.8g", lineterminator="\n"
    )
    write_bytes(path, gzip.compress(text.encode(), 9, mtime=0))
    return len(new)
