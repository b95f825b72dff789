"""Results of rows on the problems of a suite: means over replicates, costs and states."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from components.metrics.names import COST_PREFIX, score_range
from runner.arena.scores import SCORED, final_lines

DIVERGED = 1e6  # times the median size of the scores of all rows on a problem
PLACE = ["row", "problem"]


def list_costs(lines: pd.DataFrame) -> list[str]:
    """Kinds of cost that occur in the lines, in a fixed order."""
    counted = final_lines(lines).filter(regex=f"^{COST_PREFIX}").dropna(axis="columns", how="all")
    return sorted(str(name).removeprefix(COST_PREFIX) for name in counted)


def average(lines: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Means over replicates, by row, problem and step.

    Sums are exact: the mean does not depend on the order of the scores.  A mean is infinite if a
    replicate is, and NaN if a value is missing.
    """
    keys = [*PLACE, "step"]
    values = lines.reindex(columns=[*keys, *metrics])
    return values.groupby(keys, sort=False)[[*metrics]].agg(statistics.fmean)


def mean_results(lines: pd.DataFrame, metric: str) -> pd.DataFrame:
    """State, mean score over replicates and mean costs by kind, for each row and problem.

    A row without some replicates of a problem is incomplete on that problem.  Infinite scores, and
    scores a million times the median size of the others, count as divergences.  A replicate without
    a score that other rows have, or with a score outside its range, leaves the row without a score.
    """
    names = {metric: "score"} | {COST_PREFIX + kind: kind for kind in list_costs(lines)}
    final = final_lines(lines)
    scores = final.reindex(columns=[metric])[metric]
    final = final.assign(**{metric: scores.where(scores.between(*score_range(metric)))})
    places = final.groupby(PLACE, sort=False)
    means = average(final, [*names]).droplevel("step").rename(columns=names)
    results = means.assign(state=places["state"].first())
    counts = places.size()
    is_short = counts < counts.groupby("problem").transform("max")
    results = _unscore(results, is_short & results["state"].isin(SCORED), "incomplete")
    sizes = results["score"].abs()
    medians = sizes.where(np.isfinite(sizes)).groupby(level="problem").transform("median")
    is_far = np.isinf(sizes) | (sizes > (DIVERGED * medians).replace(0.0, np.inf))
    results = _unscore(results, is_far, "diverged")
    is_empty = results["score"].isna() & results["state"].isin(SCORED)
    others = results["score"].notna().groupby(level="problem").transform("any")
    return _unscore(results, is_empty & others, "no score")


def _unscore(results: pd.DataFrame, where: pd.Series[bool], state: str) -> pd.DataFrame:
    """Results in which the places where ``where`` is True get another state and lose their score."""
    scores = results["score"].mask(where)
    return results.assign(score=scores, state=results["state"].mask(where, state))


def count_states(results: pd.DataFrame) -> dict[str, Counter[str]]:
    """Number of problems in each state, by row; a problem without a line is not run."""
    states = results["state"].unstack("problem").fillna("not run")
    return {str(row): Counter(each) for row, each in states.iterrows()}


def trace(lines: pd.DataFrame, means: pd.DataFrame, metric: str, kind: str) -> pd.DataFrame:
    """Median score and cost over problems, by row and evaluation; the end of the runs comes last.

    Problems without a final score or cost are omitted; an evaluation is included if all other
    problems have it.

    Args:
        lines: all lines.
        means: their ``average``.
        metric: name of the score.
        kind: kind of the cost.
    """
    ends = mean_results(lines, metric).dropna(subset=["score", kind])
    points = means.reindex(columns=[COST_PREFIX + kind, metric]).set_axis(["cost", "mean"], axis=1)
    points = points.replace([np.inf, -np.inf], np.nan).sort_index(level="step").reset_index("step")
    points = points[points.index.isin(ends.index)]
    number = points.groupby(PLACE).cumcount()  # 0: the end
    evaluations = points.groupby(["row", number.replace(0, len(points))])[["cost", "mean"]]
    counts = evaluations.count().min(axis=1)
    is_whole = counts == counts.groupby("row").transform("max")
    return evaluations.median()[is_whole].reset_index()
