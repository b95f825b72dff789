"""Critical-difference diagrams: rows of a table that differ in rank over many blocks.

A block is a column of the table (a data set; the score is the mean over its replicates, or the
median as in the table), or a replicate of one column or of every column, with the same data for all
rows.  The test of Friedman (1937) decides if the rows differ at all.  Then two mean ranks differ by
Nemenyi (1963) if their distance exceeds ``q_α √(k(k + 1)/(6N))``, or by two-sided signed-rank tests
of all k(k − 1)/2 pairs with the correction of Holm (1979), which do not depend on the other rows.

Source: Demšar (2006), sections 3.2.2 and 3.2.3; García and Herrera (2008) and Benavoli
et al. (2016) for the second test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import friedmanchisquare, studentized_range

from runner.report.figures.picture import FigureSource, Picture
from runner.report.scores.cells import TableLayout
from runner.report.scores.frame import OTHER_PROTOCOL, cells_frame, scores_frame
from runner.statistics.paired_tests import LEVEL, compare, holm
from runner.study.figure_specs import RankSpec

if TYPE_CHECKING:
    import pandas as pd

MIN_BLOCKS = 5
MIN_ROWS = 3


@dataclass(frozen=True)
class Ranking:
    """Mean ranks (1 is best) and significance of pairs."""

    ranks: dict[str, float]
    p_friedman: float
    distance: float | None  # critical difference; None for tests of pairs
    alike: set[frozenset[str]]

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


def rank(scores: pd.DataFrame, test: Literal["nemenyi", "wilcoxon"]) -> Ranking:
    """Rank rows by their scores [blocks, rows], where lower is better."""
    n, k = scores.shape
    # ties share the mean of their ranks
    ranks = {str(row): float(mean) for row, mean in scores.rank(axis=1).mean().items()}
    is_level = scores.nunique(axis=1).max() == 1
    p_friedman = 1.0 if is_level else float(friedmanchisquare(*scores.to_numpy(float).T).pvalue)
    pairs = list(combinations(ranks, 2))
    if test == "nemenyi":
        distance = critical_difference(k, n)
        alike = {frozenset((a, b)) for a, b in pairs if abs(ranks[a] - ranks[b]) <= distance}
        return Ranking(ranks, p_friedman, distance, alike)
    values = {row: dict(enumerate(scores[row])) for row in ranks}
    tested = holm({(a, b): compare(values[a], values[b]) for a, b in pairs})
    alike = {frozenset(rows) for rows, pair in tested.items() if not pair.p_holm <= LEVEL}
    return Ranking(ranks, p_friedman, None, alike)


def critical_difference(k: int, n: int, level: float = LEVEL) -> float:
    """Critical difference q_α √(k(k + 1)/(6N)); q_α is the upper quantile of the studentized range
    of k, divided by √2."""
    q = float(studentized_range.ppf(1 - level, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * n))


def draw_ranks(spec: RankSpec, source: FigureSource) -> Picture | None:
    """Draw the diagram; None if too few rows or blocks have scores."""
    from components.figures.supervised.critical_difference import critical_difference_diagram

    laid = next(t for t in source.tables if t.spec.name == spec.table)
    scores = collect_blocks(spec, laid, source.names)
    n, k = scores.shape
    if k < MIN_ROWS or n < MIN_BLOCKS:
        return None
    ranking = rank(scores.rename(columns=source.names), spec.test)
    blocks = {
        "columns": "columns",
        "replicates": f"replicates of column {spec.column}",
        "all": "replicates of all columns",
    }[spec.blocks]
    by = (
        f"Nemenyi, critical difference {ranking.distance:.2f}"
        if ranking.distance is not None
        else "two-sided Wilcoxon tests of all pairs, corrected by Holm"
    )
    caption = (
        f"{spec.title}{source.settings}: mean ranks over {n} {blocks}, 1 is best; "
        f"bars join rows without a significant difference at 5 % ({by}); "
        f"Friedman p {ranking.p_friedman:.2g}; data: {', '.join(laid.data)}"
    )
    figure = critical_difference_diagram(ranking.ranks, ranking.groups(), ranking.distance)
    return Picture(figure, caption, is_interactive=False)


def collect_blocks(spec: RankSpec, laid: TableLayout, rows: Iterable[str]) -> pd.DataFrame:
    """Finite scores [blocks, rows] with lower values better, for the blocks shared by all rows with
    scores.

    Rows without a score, and scores of a protocol other than the study's, are excluded.  Blocks are
    indexed by column, seed and replicate; seed and replicate are -1 for a complete column.
    """
    frame = cells_frame([laid]) if spec.blocks == "columns" else scores_frame([laid])
    is_used = frame["row"].isin(list(rows)) & (frame["state"] != OTHER_PROTOCOL)
    is_used &= frame["column"].isin([spec.column] if spec.blocks == "replicates" else laid.columns)
    frame = frame[is_used & np.isfinite(frame["score"])]
    signs = {c: -1.0 if laid.spec.column_direction(c) == "higher" else 1.0 for c in laid.columns}
    losses = frame.assign(score=frame["score"] * frame["column"].map(signs).astype(float))
    table = losses.pivot(index=["column", "seed", "replicate"], columns="row", values="score")
    blocks: pd.DataFrame = table.reindex(columns=frame["row"].unique()).dropna()
    return blocks
