"""Figures of a round robin: each row against each opponent, and the frontier of two scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from runner.arena.scores import Line, is_finite
from runner.arena.standings import gather
from runner.arena.suite import Suite
from runner.report.figures.costs import pareto_front

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pair_scores(
    suite: Suite, lines: Sequence[Line], metric: str, rows: Sequence[str]
) -> dict[str, np.ndarray]:
    """Mean scores of the rows against each opponent, by problem [rows, opponents].

    Replicate r meets opponent r mod M.  A pair without a finite score is NaN; a problem without
    any is left out.
    """
    M = len(suite.opponents)
    values: dict[tuple[str, str, int], list[float]] = {}
    for line in lines:
        score = line.values.get(metric)
        if line.is_final and score is not None and is_finite(score):
            pair = (line.problem, line.row, line.replicate % M)
            values.setdefault(pair, []).append(score)
    matrices: dict[str, np.ndarray] = {}
    for problem in suite.problems:
        means = [[values.get((problem, row, m)) for m in range(M)] for row in rows]
        matrix = np.array([[np.mean(v) if v else math.nan for v in each] for each in means])
        if np.isfinite(matrix).any():
            matrices[problem] = matrix
    return matrices


def draw_pairs(
    suite: Suite, lines: Sequence[Line], rows: Sequence[str]
) -> tuple[Figure, str] | None:
    """Figure and caption of the first score against each opponent; None: there is nothing."""
    if not suite.opponents:
        return None
    table = suite.tables[0]
    matrices = pair_scores(suite, lines, str(table.metric), rows)
    if not matrices:
        return None
    from components.games.figures.pairs import pair_figure

    caption = f"{table.title} of each row (left) against each opponent (below), mean of replicates"
    return pair_figure(matrices, rows, suite.opponents), caption


def draw_frontier(
    suite: Suite, lines: Sequence[Line], rows: Sequence[str]
) -> tuple[Figure, str] | None:
    """Figure and caption of the suite's two scores against each other, a panel for each problem;
    None: there is nothing."""
    if suite.frontier is None:
        return None
    import pandas as pd

    from components.figures.samples.trade_off import trade_off_figure

    x, y = suite.frontier.x, suite.frontier.y
    by_x, by_y = gather(lines, x), gather(lines, y)
    directions = {str(table.metric): suite.direction(table) for table in suite.tables}
    points = []
    for problem in suite.problems:
        scores = {}
        for row in rows:
            found = [by.get(row, {}).get(problem) for by in (by_x, by_y)]
            pair = [result.score for result in found if result and is_finite(result.score)]
            if len(pair) == 2:
                scores[row] = (pair[0], pair[1])
        sign = 1.0 if directions[x] == "lower" else -1.0
        front = pareto_front([(sign * a, b) for a, b in scores.values()], directions[y])
        for (row, (a, b)), on_front in zip(scores.items(), front, strict=True):
            points.append({"panel": problem, "method": row, "x": a, "y": b, "front": on_front})
    if not points:
        return None
    caption = f"{y} against {x}, means of replicates; filled: on the Pareto front of the problem"
    return trade_off_figure(pd.DataFrame(points), x, y), caption
