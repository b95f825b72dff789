"""``python -m scripts.arena SUITE``: run the rows of a suite and keep their scores.

    python -m scripts.arena posteriors --budget medium --jobs 2 --output-dir FOLDER
    python -m scripts.arena posteriors --budget medium --output-dir FOLDER --keep
    python -m scripts.arena weights --gold posterior_quality --output-dir FOLDER

Rows are run sequentially, like users' rows in ``runner arena run``; repeating the command continues
with the missing runs.  ``--keep`` runs nothing: lines of finished runs replace the lines with the
same budget, row and problem in ``SUITE.csv.gz`` next to the YAML.  ``--gold`` copies the predictions
of a study's gold row from its runs in the folder.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import pandas as pd

from runner.arena.rows import find_snapshots, prepare_row
from runner.arena.scores import FIXED, ORDER, read_kept, read_snapshots
from runner.arena.stored import COLUMNS, ENDING, load_gold, stored_file
from runner.arena.suite import Suite, load_suite
from runner.disk.atomic import write_bytes
from runner.report.scores.distances import read_predictions
from runner.study import snapshot as snapshots
from runner.study.choice import select_runs
from runner.study.snapshot import Snapshot
from runner.study.study import run_remaining

PLACE = ["budget", "row", "problem"]
SCORE_DIGITS = 6  # significant ones, of a kept score
GOLD_DIGITS = 8


def merge(kept: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Replace kept lines by lines of new runs."""
    places = pd.MultiIndex.from_frame(new[PLACE])
    is_new = pd.MultiIndex.from_frame(kept[PLACE]).isin(places)
    return pd.concat([kept[~is_new], new], ignore_index=True)


def keep(suite: Suite, budget: str, output_dir: Path) -> None:
    """Write the lines of finished runs into the kept scores."""
    lines = read_snapshots(suite, budget, find_snapshots(suite, budget, output_dir))
    is_row = lines["row"].isin([row.name for row in suite.rows])
    new = lines[is_row & (lines["state"] != "not run")]
    base = load_suite(suite.extends) if suite.extends else None
    is_shared = new["problem"].isin(base.problems if base else [])
    if base:
        write(base, new[is_shared])
    write(suite, new[~is_shared])


def write(suite: Suite, new: pd.DataFrame) -> None:
    """Merge lines into the kept scores of a suite."""
    path = stored_file(suite.name)
    assert path is not None  # the suite was loaded from a file
    write_kept(merge(read_kept(path), new), path)
    print(f"{path}: {len(new)} lines of {new['row'].nunique()} rows")


def write_kept(lines: pd.DataFrame, path: Path) -> None:
    """Write lines in a fixed order, without metrics that are missing in all lines."""
    metrics = [name for name in lines.columns.difference(FIXED) if lines[name].notna().any()]
    write_stored(lines.sort_values(ORDER)[[*FIXED, *metrics]], SCORE_DIGITS, path)


def write_stored(table: pd.DataFrame, digits: int, path: Path) -> None:
    """Write a file, with ``digits`` significant digits; equal tables give identical bytes."""
    text = table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    write_bytes(path, gzip.compress(text.encode(), 9, mtime=0))


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
    write_stored(table.sort_values("problem", kind="stable"), GOLD_DIGITS, path)
    return len(new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--budget")
    parser.add_argument("--rows", nargs="*", help="labels (default: all)")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output-dir", default="outputs")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument(
        "--gold", metavar="STUDY", help="keep the predictions of this study's gold row"
    )
    given = parser.parse_args()
    suite = load_suite(given.suite)
    budget = suite.budget(given.budget)
    output_dir = Path(given.output_dir).resolve()
    if given.gold:
        snapshot = snapshots.load(given.gold, output_dir)
        n = keep_gold(suite, snapshot) if snapshot else 0
        print(f"predictions of {suite.gold} on {n} problems")
        return
    if given.keep:
        keep(suite, budget, output_dir)
        return
    # without MLflow: its process takes as long as a short run
    suite = suite.model_copy(update={"overrides": [*suite.overrides, "tracking=false"]})
    for row in suite.rows:
        if given.rows is None or row.name in given.rows:
            snapshot = prepare_row(suite, budget, row, output_dir, only=given.only)
            run_remaining(snapshot, select_runs(snapshot, given.only), given.jobs)


if __name__ == "__main__":
    main()
