"""Standings of a suite with solvable problems, by the number of solved problems and their cost.

A replicate solves a problem at the cost after which its error stays below a tolerance until the end
of its budget.  The cost includes the warm-up and is counted in gradients; an evaluation of the
density without its gradient counts as a third.  The cost is infinite for a missing replicate and
for a run that failed, overspent, has no score or is not applicable.  The cost of a row on a problem
is the median over the replicates of the suite.

Rows are ordered by the number of solved problems, then by the geometric mean of the ratio of their
cost to the best row's cost, on the problems that both solve.  Failed checks do not affect the
order.

Costs of solving are a frame [rows, problems], infinite for unsolved problems.

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
    """Costs of lines in gradients; infinite if no cost was counted."""
    names = [f"{COST_PREFIX}gradients", f"{COST_PREFIX}densities"]
    counts = lines.reindex(columns=names).fillna(0.0)
    gradients, densities = (counts[name] for name in names)
    total = gradients + DENSITY * (densities - gradients).clip(lower=0.0)
    return total.where(total > 0, math.inf)


def costs_of_replicates(lines: pd.DataFrame, metric: str, tolerance: float) -> pd.Series[float]:
    """Cost after which the error of each replicate stays below a tolerance; infinite if the final
    error exceeds it or is negative, or if the scores of the run are invalid.
    """
    error = lines.reindex(columns=[metric])[metric]
    is_below = error.between(0, tolerance, inclusive="left") & lines["state"].isin(SCORED)
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
    """Rows ordered by the number of solved problems and the cost of solving them.

    Columns: place (1 is best; tied rows share a place), solved (number of solved problems), and
    ratio, the geometric mean of the cost divided by the best row's; infinite without a common
    problem.
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
    """Geometric mean of the finite ratios of each row; infinite, and therefore last, without a
    finite ratio.
    """
    finite = {row: each[np.isfinite(each)] for row, each in ratios.iterrows()}
    means = {row: statistics.geometric_mean(f) if len(f) else math.inf for row, f in finite.items()}
    return pd.Series(means, dtype=float).rename_axis("row")


def performance_ratios(costs: pd.DataFrame) -> pd.DataFrame:
    """r = cost divided by the minimum over rows on the problem; infinite for unsolved problems.

    Problems that no row solves are kept, with infinite ratios."""
    return (costs / costs.min()).fillna(math.inf)
