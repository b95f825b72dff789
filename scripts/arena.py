"""``python -m scripts.arena SUITE``: run the rows of a suite and keep their scores.

    python -m scripts.arena posteriors --budget medium --jobs 2 --output-dir FOLDER
    python -m scripts.arena posteriors --budget medium --output-dir FOLDER --keep
    python -m scripts.arena uci --from-results aadm_uci
    python -m scripts.arena weights --gold posterior_quality --output-dir FOLDER

Rows are run sequentially, like users' rows in ``runner arena run``; repeating the command continues
with the missing runs.  ``--keep`` runs nothing: lines of finished runs replace the lines with the
same budget, row and problem in ``SUITE.csv.gz`` next to the YAML.  ``--from-results`` copies the kept
scores of a study (docs/results) with the same rows and with the suite's problems as columns; their
costs were not counted.  ``--gold`` copies the predictions of a study's gold row from its runs in
the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from runner.arena.rows import find_snapshots, prepare_row
from runner.arena.scores import read_kept, read_snapshots, write_kept
from runner.arena.stored import keep_gold, stored_file
from runner.arena.suite import Suite, load_suite
from runner.report.origin import read_kept_scores
from runner.study import snapshot as snapshots
from runner.study.choice import select_runs
from runner.study.definition import load_study
from runner.study.study import run_remaining
from scripts.prose.scores import FOLDER, list_scores

PLACE = ["budget", "row", "problem"]


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


def from_results(suite: Suite, name: str) -> pd.DataFrame:
    """Lines of a study's kept scores with the suite's rows, problems, scores and replicates."""
    study = load_study(name)
    kept = read_kept_scores({name: list_scores(FOLDER)[name]}, study)
    commit = dict(kept.origin.provenance).get("frozen", "").partition("commit ")[2]
    metrics = {
        (table.name, column): table.column_metric(column)
        for table in study.tables
        for column in study.columns(table)
    }
    scores = kept.scores.rename(columns={"column": "problem"})
    metric = [metrics[place] for place in zip(scores["table"], scores["problem"], strict=True)]
    scores = scores.assign(metric=metric)
    is_used = scores["row"].isin([row.name for row in suite.rows])
    is_used &= scores["problem"].isin(suite.problems) & scores["metric"].isin(suite.metrics)
    if suite.replicates:
        is_used &= scores["replicate"] < suite.replicates
    replicate = ["row", "problem", "data", "seed", "replicate"]
    lines = scores[is_used].pivot(index=replicate, columns="metric", values="score").reset_index()
    doubted = {(cell.row, cell.column) for cell in kept.origin.cells if cell.failures}
    states = [
        "doubted" if place in doubted else "done"
        for place in zip(lines["row"], lines["problem"], strict=True)
    ]
    return lines.assign(budget="", step=-1, state=states, commit=commit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--budget")
    parser.add_argument("--rows", nargs="*", help="labels (default: all)")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output-dir", default="outputs")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--from-results", metavar="STUDY")
    parser.add_argument(
        "--gold", metavar="STUDY", help="keep the predictions of this study's gold row"
    )
    given = parser.parse_args()
    suite = load_suite(given.suite)
    budget = suite.budget(given.budget)
    output_dir = Path(given.output_dir).resolve()
    if given.from_results:
        write(suite, from_results(suite, given.from_results))
        return
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
