"""Comparison of the scores of a rerun with other seeds with the kept ones, cell by cell.

    runner study sarcos_table seed=901 replicates=5 --only model=igp --output-dir /tmp/again
    python -m scripts.rerun sarcos_table /tmp/again

For each common cell: mean (or median, as in the table) ± SE of both, and their difference in units
of its standard error, the root of the sum of squares; SE are taken from the page, corrected for
overlapping splits.  About one cell in twenty differs by more than 2 at random, more with few
replicates.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from runner.report.results import layout_table
from runner.report.scores.cells import TableLayout
from runner.statistics.paired_tests import ROUNDING, PairedDifference, Summary
from runner.study import snapshot as snapshots
from scripts.prose.scores import FOLDER, load_tables

LIMIT = 2.0  # standard errors


class Pair(NamedTuple):
    """A cell with its kept and its new scores."""

    table: str
    row: str
    column: str
    kept: Summary
    again: Summary

    @property
    def apart(self) -> float:
        """Difference in units of its standard error."""
        kept = self.kept
        again = self.again
        is_equal = math.isclose(again.mean, kept.mean, rel_tol=ROUNDING)
        difference = 0.0 if is_equal else again.mean - kept.mean
        se = math.hypot(kept.se or 0.0, again.se or 0.0)
        return PairedDifference(difference, se, again.n, math.nan).in_se


def pair_cells(name: str, output_dir: Path, folder: Path) -> list[Pair]:
    """Cells of a study with kept scores and with scores of runs in this folder."""
    kept = load_tables(folder, name)
    snapshot = snapshots.load(name, output_dir)
    if snapshot is None:
        raise SystemExit(f"{name}: was not launched under {output_dir}")
    kept_summaries = _summarise(kept.values())
    after = _summarise(layout_table(snapshot.study, snapshot))
    pairs = [Pair(*key, kept_summaries[key], after[key]) for key in after if key in kept_summaries]
    return sorted(pairs, key=lambda pair: -abs(pair.apart))


def _summarise(tables: Iterable[TableLayout]) -> dict[tuple[str, str, str], Summary]:
    """Summaries of the cells with scores."""
    return {
        (laid.spec.name, cell.row.name, cell.column): summary
        for laid in tables
        for cell in laid.cells
        if (summary := cell.judged(laid.spec)) is not None
    }


def main(argv: list[str] | None = None) -> int:
    """Print the cells in descending order of differences; return 1 if more than a tenth exceed the
    limit."""
    parser = argparse.ArgumentParser(prog="python -m scripts.rerun", description=__doc__)
    parser.add_argument("study")
    parser.add_argument("output_dir", type=Path)
    arguments = parser.parse_args(argv)
    pairs = pair_cells(arguments.study, arguments.output_dir.resolve(), FOLDER)
    far = sum(abs(pair.apart) > LIMIT for pair in pairs)
    print(f"{arguments.study}: {len(pairs) - far} of {len(pairs)} cells within {LIMIT:g} SE")
    for pair in pairs:
        values = (
            f"{s.mean:.4g} ± {s.se or math.nan:.2g} (n {s.n})" for s in (pair.kept, pair.again)
        )
        where = f"{pair.table}: {pair.row}, {pair.column}"
        print(f"{pair.apart:+6.1f}  {where:60}  kept {next(values)}  again {next(values)}")
    return int(not pairs or far > len(pairs) / 10)


if __name__ == "__main__":
    sys.exit(main())
