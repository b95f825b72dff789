"""``python -m scripts.arena SUITE``: runs the rows of a suite, and keeps their scores.

    python -m scripts.arena posteriors --budget medium --jobs 2 --output-dir FOLDER
    python -m scripts.arena posteriors --budget medium --output-dir FOLDER --keep

Rows are run one after the other, as ``runner arena run`` runs a user's; the same command again goes
on with what is missing.  ``--keep`` runs nothing: lines of finished runs replace those of the same
budget, row and problem in ``conf/arena/SUITE.csv.gz``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runner import CONF
from runner.arena.command import find_snapshots, prepare_row
from runner.arena.scores import Line, read_kept, read_snapshot, write_kept
from runner.arena.suite import GROUP, Suite, load_suite
from runner.study.choice import select_runs
from runner.study.study import run_remaining


def merge(kept: list[Line], new: list[Line]) -> list[Line]:
    """Kept lines with those of new runs in place of earlier ones."""
    places = {(line.budget, line.row, line.problem) for line in new}
    return [*(k for k in kept if (k.budget, k.row, k.problem) not in places), *new]


def keep(suite: Suite, budget: str, output_dir: Path) -> None:
    """Writes the lines of finished runs into the kept scores."""
    rows = {row.name for row in suite.rows}
    frozen = find_snapshots(suite, budget, output_dir)
    lines = [line for snapshot in frozen for line in read_snapshot(suite, budget, snapshot)]
    new = [line for line in lines if line.row in rows and line.state != "not run"]
    path = CONF / GROUP / f"{suite.name}.csv.gz"
    write_kept(merge(read_kept(path) if path.is_file() else [], new), path)
    print(f"{path}: {len(new)} lines of {len({line.row for line in new})} rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--budget")
    parser.add_argument("--rows", nargs="*", help="labels (default: all)")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output-dir", default="outputs")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    suite = load_suite(given.suite)
    budget = suite.budget(given.budget)
    output_dir = Path(given.output_dir).resolve()
    if given.keep:
        keep(suite, budget, output_dir)
        return
    for row in suite.rows:
        if given.rows is None or row.name in given.rows:
            snapshot = prepare_row(suite, budget, row, output_dir)
            run_remaining(snapshot, select_runs(snapshot, given.only), given.jobs)


if __name__ == "__main__":
    main()
