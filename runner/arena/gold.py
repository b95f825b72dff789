"""Stored predictions of a suite's gold row: the reference for the predictions of other rows.

``conf/arena/<suite>.gold.csv.gz`` has a line for each test row of a problem: the label, and mean
and standard deviation of the gold row's predictive, in the units of the labels.
"""

from __future__ import annotations

import pandas as pd

from runner.arena.stored import read_stored, stored_file, write_stored
from runner.arena.suite import Suite
from runner.report.scores.distances import PREDICTIONS, read_predictions
from runner.study.snapshot import Snapshot

COLUMNS = ["problem", *PREDICTIONS]
ENDING = "gold.csv.gz"
DIGITS = 8


def load_gold(suite: Suite) -> pd.DataFrame:
    """The kept predictions of a suite, empty where there are none: problem, label, mean, sd.

    Raises:
        ConfigError: the file is damaged.
    """
    path = stored_file(suite.name, ENDING)
    if path is None or not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    types = dict.fromkeys(PREDICTIONS, float)
    return read_stored(path, {"problem": str}, lambda table: table[COLUMNS].astype(types))


def keep_gold(suite: Suite, snapshot: Snapshot) -> int:
    """Write the predictions of the gold row's runs, replacing stored ones of the same problems.

    A cell of the study has a problem's name as its value.  Returns: the number of problems."""
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
