"""Critical-difference diagrams: rows of a table that differ in rank over many blocks.

A block is a column of the table (a data set; the score is the mean over its replicates,
or the median if the table has it), or a replicate of one column or of every column, which
all rows saw alike.  Friedman (1937) tests if the rows differ at all.  Then, by Nemenyi (1963), two
mean ranks differ that are further apart than ``q_α √(k(k + 1)/(6N))``, or, pair by
pair, by two-sided signed-rank tests corrected by Holm (1979) for all k(k − 1)/2 of
them, which does not depend on the other rows.

Source: Demšar (2006), sections 3.2.2 and 3.2.3; García and Herrera (2008) and Benavoli
et al. (2016) for the second test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from runner.report.figures.picture import Picture
from runner.report.scores.cells import Cell, TableLayout
from runner.statistics.paired_tests import LEVEL, compare, holm, scores_by_replicate
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import RankSpec

MIN_BLOCKS = 5
MIN_ROWS = 3


@dataclass(frozen=True)
class Ranking:
    """Mean ranks (1 is best), and which pairs cannot be told apart."""

    ranks: dict[str, float]
    n_blocks: int
    p_friedman: float
    distance: float | None  # critical difference; None: the pairs were tested one by one
    alike: set[frozenset[str]] = field(default_factory=set)

    def groups(self) -> list[list[str]]:
        """Largest groups of rank neighbours without a significant pair; a bar joins each group."""
        names = sorted(self.ranks, key=lambda name: self.ranks[name])
        cliques: list[list[str]] = []
        for i in range(len(names)):
            end = i
            while end + 1 < len(names) and all(
                frozenset({a, names[end + 1]}) in self.alike for a in names[i : end + 1]
            ):
                end += 1
            if end > i and not (cliques and names[end] in cliques[-1]):
                cliques.append(names[i : end + 1])
        return cliques


def rank(scores: dict[str, NDArray[np.float64]], lower: bool, test: str) -> Ranking:
    """Ranking of scores [blocks] by row.

    Raises:
        ValueError: fewer than three rows, or scores of different length.
    """
    names = list(scores)
    if len(names) < MIN_ROWS:
        raise ValueError(f"{len(names)} rows cannot be ranked; three or more can")
    table = np.stack([scores[name] for name in names], axis=1)  # [N, k]
    n, k = table.shape
    # ties share the mean of their ranks
    ranks = rankdata(table if lower else -table, axis=1).mean(axis=0)
    level = bool((table == table[:, :1]).all())
    p_friedman = 1.0 if level else float(friedmanchisquare(*table.T).pvalue)
    mean_ranks = dict(zip(names, map(float, ranks), strict=True))
    pairs = list(combinations(range(k), 2))
    if test == "nemenyi":
        distance = critical_difference(k, n)
        alike = {
            frozenset({names[i], names[j]})
            for i, j in pairs
            if abs(ranks[i] - ranks[j]) <= distance
        }
        return Ranking(mean_ranks, n, p_friedman, distance, alike)
    values = [scores_by_replicate(column.tolist()) for column in table.T]
    tested = holm({(i, j): compare(values[i], values[j]) for i, j in pairs})
    alike = {
        frozenset({names[i], names[j]})
        for (i, j), pair in tested.items()
        if not pair.p_holm <= LEVEL
    }
    return Ranking(mean_ranks, n, p_friedman, None, alike)


def critical_difference(k: int, n: int, level: float = LEVEL) -> float:
    """q_α √(k(k + 1)/(6N)), where q_α is the upper point of the studentized range of k, over √2."""
    q = float(studentized_range.ppf(1 - level, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * n))


def ranks(study: StudyDefinition, tables: list[TableLayout]) -> dict[str, Picture]:
    """Every diagram of ``study.ranks`` that has scores enough: {file stem: figure}."""
    if not study.ranks:
        return {}
    from components.figures.supervised.critical_difference import critical_difference_diagram

    pictures = {}
    for spec in study.ranks:
        laid = next(t for t in tables if t.spec.name == spec.table)
        names, preset = study.row_labels(spec)
        _, scores = collect_blocks(spec, laid, list(names))
        n = len(next(iter(scores.values()), []))
        if len(scores) < MIN_ROWS or n < MIN_BLOCKS:
            continue
        ranking = rank({names[row]: values for row, values in scores.items()}, True, spec.test)
        blocks = {
            "columns": "columns",
            "replicates": f"replicates of {spec.column}",
            "all": "replicates of all columns",
        }[spec.blocks]
        by = (
            f"Nemenyi, critical difference {ranking.distance:.2f}"
            if ranking.distance is not None
            else "two-sided Wilcoxon tests of all pairs after Holm"
        )
        settings = f", {preset}" if preset else ""
        data = ", ".join(laid.data)
        caption = (
            f"{spec.title}{settings}: mean ranks over {n} {blocks}, 1 is best; bars join what cannot be told apart at 5 % "
            f"({by}); Friedman p {ranking.p_friedman:.2g}; data: {data}"
        )
        figure = critical_difference_diagram(ranking.ranks, ranking.groups(), ranking.distance)
        pictures[spec.name] = Picture(figure, caption, is_interactive=False)
    return pictures


Block = tuple[str, int, int]  # column, seed and replicate; -1 for a whole column


def _blocks_of_cell(spec: RankSpec, laid: TableLayout, cell: Cell) -> dict[Block, float]:
    """Finite scores of one cell by block, turned so that lower is better.

    Scores of another protocol than the study's are in no block.
    """
    if cell.other_protocol:
        return {}
    sign = -1.0 if laid.spec.column_direction(cell.column) == "higher" else 1.0
    scores: dict[Block, float] = {}
    if spec.blocks == "all" or (spec.blocks == "replicates" and cell.column == spec.column):
        scores = {(cell.column, *key): value for key, value in cell.values.items()}
    elif spec.blocks == "columns" and (centre := cell.centre(laid.spec)) is not None:
        scores[cell.column, -1, -1] = centre[0]
    return {key: sign * value for key, value in scores.items() if math.isfinite(value)}


def collect_blocks(
    spec: RankSpec, laid: TableLayout, rows: list[str]
) -> tuple[list[Block], dict[str, NDArray[np.float64]]]:
    """The blocks that all rows with any score have, and scores by row, turned so that lower is
    better; rows without a score are left out."""
    by_row: dict[str, dict[Block, float]] = {}
    for row, cells in laid.rows:
        if row.name not in rows:
            continue
        for cell in cells:
            if blocks := _blocks_of_cell(spec, laid, cell):
                by_row.setdefault(row.name, {}).update(blocks)
    shared = [
        key
        for key in next(iter(by_row.values()), {})
        if all(key in values for values in by_row.values())
    ]
    return shared, {
        name: np.array([values[key] for key in shared]) for name, values in by_row.items()
    }
