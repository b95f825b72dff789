"""Standings of a suite with solvable problems: by problems solved and by the cost to solve.

A replicate solves a problem at the cost from which on its error stays below a tolerance to the end
of its budget.  The cost is counted in gradients, an evaluation of the density without its gradient
as a third of one; the warm-up is part of it.  A run that failed, overspent, has no score or does
not apply has an infinite cost, and so has a replicate that is missing.  The cost of a row on a
problem is the median over the replicates of the suite.

Rows are ordered by the problems that they solve, then by the geometric mean of their cost over that
of the best row, on the problems that both solve.  Failed checks move no row.

Costs to solve are a frame [rows, problems]; infinite: not solved.

Source: Dolan & Moré (2002) for performance profiles.
"""

from __future__ import annotations

import math
import statistics

import numpy as np
import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.scores import SCORED

DENSITY = 1 / 3  # cost of an evaluation of the density, in gradients
RUN = ["row", "problem", "seed", "replicate"]


def count_evaluations(lines: pd.DataFrame) -> pd.Series[float]:
    """Costs of lines in gradients; infinite where none was counted."""
    names = [f"{COST_PREFIX}gradients", f"{COST_PREFIX}densities"]
    counts = lines.reindex(columns=names).fillna(0.0)
    gradients, densities = (counts[name] for name in names)
    total = gradients + DENSITY * (densities - gradients).clip(lower=0.0)
    return total.where(total > 0, math.inf)


def costs_of_replicates(lines: pd.DataFrame, metric: str, tolerance: float) -> pd.Series[float]:
    """Cost from which on the error of each replicate stays below a tolerance; infinite if its final
    error does not, or if the scores of its run do not count."""
    is_below = (lines[metric] < tolerance) & lines["state"].isin(SCORED)  # a NaN is not below it
    steps = lines["step"].where(lines["step"] >= 0, math.inf)
    backwards = lines[RUN].assign(is_below=is_below, cost=count_evaluations(lines), step=steps)
    backwards = backwards.sort_values("step", ascending=False)
    stays = backwards.groupby(RUN)["is_below"].cummin()
    costs = backwards.assign(cost=backwards["cost"].where(stays)).groupby(RUN)["cost"].last()
    return costs.fillna(math.inf)


def costs_to_solve(
    lines: pd.DataFrame, metric: str, tolerance: float, replicates: int
) -> pd.DataFrame:
    """Median cost over the replicates of a suite, by row and problem."""

    places = costs_of_replicates(lines, metric, tolerance).groupby(["row", "problem"])
    costs = places.agg(
        lambda each: statistics.median([*each, *[math.inf] * (replicates - len(each))])
    )
    return costs.unstack().fillna(math.inf).reindex(pd.Index(lines["row"].unique(), name="row"))


def place_rows(costs: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of problems solved and of the cost to solve them.

    Columns: place (1 is best; rows that are level share theirs), solved (their number), and ratio,
    the geometric mean of the cost over the best row's; infinite: no problem in common.
    """
    solved = np.isfinite(costs).sum(axis=1)
    board = pd.DataFrame({"solved": -solved, "ratio": _mean_finite(performance_ratios(costs))})
    order = ["solved", "ratio", "row"]
    best = costs.loc[board.sort_values(order).index[0]]
    board["ratio"] = _mean_finite(costs / best[np.isfinite(best)])
    board = board.sort_values(order)
    board["place"] = board.groupby(order[:2]).ngroup()
    return board.assign(
        solved=-board["solved"], place=board["place"].rank(method="min").astype(int)
    )


def _mean_finite(ratios: pd.DataFrame) -> pd.Series[float]:
    """Geometric mean of the finite ratios of each row; infinite without one, so that it comes
    last."""
    finite = {row: each[np.isfinite(each)] for row, each in ratios.iterrows()}
    means = {row: statistics.geometric_mean(f) if len(f) else math.inf for row, f in finite.items()}
    return pd.Series(means, dtype=float).rename_axis("row")


def performance_ratios(costs: pd.DataFrame) -> pd.DataFrame:
    """r = cost over the least cost of any row on the problem; infinite where it is not solved.

    Problems that no row solves stay in, as infinite for all."""
    return (costs / costs.min()).fillna(math.inf)
