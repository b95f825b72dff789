"""Mean ranks of fields: those of a study's ``ranks``, by the name of the diagram.

    {{ rank(K) }}        mean rank of a row ± SE
    {{ ranks(K) }}       table of the mean ranks of all rows in all diagrams that K matches
    {{ blocks(K) }}      number of blocks: columns, or replicates
    {{ critical(K) }}    the critical difference of Nemenyi

K: ``study:row:*:diagram``.  The SE takes the replicates of one column for one observation: they
may share rows of data.
"""

from __future__ import annotations

import fnmatch
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from runner.record.checks import join_failures
from runner.report.figures.ranks import collect_blocks, critical_difference, rank
from runner.report.scores.cells import TableLayout, mark_failures
from runner.study.figure_specs import RankSpec
from scripts.pages import format_table
from scripts.prose.estimate import Estimate
from scripts.prose.scores import Lookup, ProseError, load_scores, load_tables

DIGITS = 2


@dataclass(frozen=True)
class Diagram:
    """Mean ranks of one diagram."""

    spec: RankSpec
    ranks: dict[str, tuple[float, float]]  # row -> mean rank, SE
    n_blocks: int
    p: float  # Friedman's
    failure: str  # mark of failed checks

    @property
    def critical(self) -> str:
        """Nemenyi's critical difference."""
        return f"{critical_difference(len(self.ranks), self.n_blocks):.{DIGITS}f}"


def error_by_column(ranks: pd.DataFrame) -> NDArray[np.float64]:
    """SE of the mean of ranks [blocks, rows], columns taken for independent; nan: one column."""
    sums = (ranks - ranks.mean()).groupby(level="column").sum()
    c = len(sums)
    if c == 1:
        return np.full(ranks.shape[1], math.nan)
    error: NDArray[np.float64] = np.sqrt(c / (c - 1) * np.square(sums).sum()).to_numpy()
    return error / len(ranks)


def find_diagrams(lookup: Lookup, key: str) -> list[Diagram]:
    """The diagrams that a key names."""
    name, _, _, pattern = lookup.read_key(key)
    lookup.used.add(name)
    diagrams = _read_diagrams(lookup.folder, name)
    matching = [each for each in diagrams if fnmatch.fnmatchcase(each.spec.name, pattern)]
    if not matching:
        raise ProseError(f"{name}: {pattern!r} is no diagram of ranks with kept scores")
    return matching


def find_diagram(lookup: Lookup, key: str) -> Diagram:
    """The one diagram that a key names."""
    diagrams = find_diagrams(lookup, key)
    if len(diagrams) > 1:
        raise ProseError(f"{key!r} matches {len(diagrams)} diagrams; name one")
    return diagrams[0]


@functools.cache
def _read_diagrams(folder: Path, name: str) -> list[Diagram]:
    """The diagrams of a study that have kept scores."""
    study, _ = load_scores(folder, name)
    laid = load_tables(folder, name)
    diagrams = []
    for spec in study.ranks:
        table = laid[spec.table]
        scores = collect_blocks(spec, table, [r.name for r in study.rows_of_figure(spec)])
        if len(scores):
            diagrams.append(_make_diagram(spec, table, scores))
    return diagrams


def _make_diagram(spec: RankSpec, table: TableLayout, scores: pd.DataFrame) -> Diagram:
    """Mean ranks, their errors and Friedman's test."""
    placed = scores.rank(axis=1)
    errors = error_by_column(placed)
    ranks = {
        str(row): (float(mean), float(se))
        for (row, mean), se in zip(placed.mean().items(), errors, strict=True)
    }
    columns = scores.index.get_level_values("column")
    cells = [c for c in table.cells if c.row.name in ranks and c.column in columns]
    failure = mark_failures(join_failures(*(cell.failed for cell in cells)))
    return Diagram(spec, ranks, len(scores), rank(scores, "nemenyi").p_friedman, failure)


def format_rank(diagram: Diagram, row: str) -> str:
    """Mean rank of a row ± SE."""
    if row not in diagram.ranks:
        raise ProseError(f"{row}: not a row of {diagram.spec.name}")
    mean, se = diagram.ranks[row]
    return str(Estimate(mean, se, DIGITS, diagram.failure, decimals=DIGITS))


def tabulate_ranks(diagrams: list[Diagram]) -> str:
    """A column for each diagram: mean ranks of the rows, blocks, critical difference and p."""
    names = dict.fromkeys(row for diagram in diagrams for row in diagram.ranks)
    rows = [
        [name, *(format_rank(each, name) if name in each.ranks else "" for each in diagrams)]
        for name in names
    ]
    rows.append(["blocks", *(f"{each.n_blocks}" for each in diagrams)])
    rows.append(["critical difference (Nemenyi)", *(each.critical for each in diagrams)])
    rows.append(["p (Friedman)", *(f"{each.p:.2g}" for each in diagrams)])
    return format_table(["mean rank", *(each.spec.title for each in diagrams)], rows, "---:")
