"""Mean ranks of fields, from the diagrams in a study's ``ranks``, by name.

    {{ ranks(K) }}   table of the mean ranks ± SE of all rows in all diagrams that K matches, with the
                     number of blocks, Nemenyi's critical difference and Friedman's p

K: ``study:row:*:diagram``.  The SE treats the replicates of one column as one observation, because
they may share rows of data.
"""

from __future__ import annotations

import fnmatch
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from runner.record.checks import join_failures
from runner.report.figures.ranks import collect_blocks, critical_difference, rank
from runner.report.scores.cells import TableLayout, mark_failures
from scripts.pages import format_table
from scripts.prose.estimate import Estimate
from scripts.prose.scores import Lookup, ProseError, load_scores, load_tables

DIGITS = 2


def error_by_column(ranks: pd.DataFrame) -> NDArray[np.float64]:
    """SE of the mean of ranks [blocks, rows], for independent columns; nan for one column."""
    sums = (ranks - ranks.mean()).groupby(level="column").sum()
    c = len(sums)
    if c == 1:
        return np.full(ranks.shape[1], math.nan)
    error: NDArray[np.float64] = np.sqrt(c / (c - 1) * np.square(sums).sum()).to_numpy()
    return error / len(ranks)


def tabulate_ranks(lookup: Lookup, key: str) -> str:
    """A column for each diagram that a key names and that has kept scores."""
    name, _, _, pattern = lookup.read_key(key)
    lookup.used.add(name)
    study, _ = load_scores(lookup.folder, name)
    columns = {}
    for spec in study.ranks:
        table = load_tables(lookup.folder, name)[spec.table]
        scores = collect_blocks(spec, table, [row.name for row in study.rows_of_figure(spec)])
        if len(scores) and fnmatch.fnmatchcase(spec.name, pattern):
            columns[spec.title] = describe_ranks(table, scores)
    if not columns:
        raise ProseError(f"{name}: {pattern!r} is not a diagram of ranks with kept scores")
    rows = [[str(name), *row] for name, *row in pd.DataFrame(columns).fillna("").itertuples()]
    return format_table(["mean rank", *columns], rows, "---:")


def describe_ranks(table: TableLayout, scores: pd.DataFrame) -> pd.Series[str]:
    """Mean ranks of the rows, number of blocks, critical difference and p of a diagram."""
    placed = scores.rank(axis=1)
    shown = scores.index.get_level_values("column")
    cells = [c for c in table.cells if c.row.name in placed.columns and c.column in shown]
    failure = mark_failures(join_failures(*(cell.failed for cell in cells)))
    ranks = zip(placed.columns, placed.mean(), error_by_column(placed), strict=True)
    column = {
        row: str(Estimate(mean, se, DIGITS, failure, decimals=DIGITS)) for row, mean, se in ranks
    }
    critical = critical_difference(placed.shape[1], len(scores))
    column["blocks"] = str(len(scores))
    column["critical difference (Nemenyi)"] = f"{critical:.{DIGITS}f}"
    column["p (Friedman)"] = f"{rank(scores, 'nemenyi').p_friedman:.2g}"
    return pd.Series(column)
