"""Standings of the rows of a suite by the ranks of one of its scores.

A row's place is determined by its mean rank over the problems that apply to all placed rows; on
each problem rows are ranked by their mean over replicates.  A run that failed, overspent, diverged,
lacks a replicate or has no score ranks last.  A row that does not apply to more than a third of the
problems has no place, nor does the gold row, which is the reference for comparisons.  Equal mean
ranks are ordered by the median score over the same problems.  Failed checks (†) do not affect the
order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from components.metrics.names import ScoreDirection
from runner.arena.standing.problem_results import count_states, mean_results
from runner.statistics.paired_tests import PairedDifference, compare, holm

LEVEL = 0.9  # of a bootstrap interval
RESAMPLES = 999
LAST = ("failed", "over budget", "diverged", "incomplete", "no score", "not run")  # rank last
MOST_NOT_APPLICABLE = 1 / 3  # of the problems


@dataclass(frozen=True)
class Standing:
    """Standing of one row over all problems."""

    row: str
    place: str  # =: others share it; –: it has none
    mean_rank: float  # NaN: it has no place
    typical: float  # median over problems
    states: Counter[str]  # of its problems
    ranks: dict[Hashable, float]  # by problem; none: it has no place
    costs: Mapping[Hashable, float]  # by kind, medians over problems; NaN: not counted
    interval: tuple[float, float]
    against: PairedDifference | None  # from the reference row, over problems
    tied: tuple[str, ...]  # rows of the same mean rank, in the order of their medians


def rank_rows(
    lines: pd.DataFrame,
    metric: str,
    direction: ScoreDirection | None,
    reference: str | None = None,
    gold: str | None = None,
) -> list[Standing]:
    """All placed rows in order, then the other rows.

    The others are compared with the row ``reference``, by default the leader.
    """
    results = mean_results(lines, metric)
    problems = results["score"].dropna().index.unique("problem")
    scores, states = (
        results[name].unstack("problem").reindex(columns=problems) for name in ("score", "state")
    )
    states = states.fillna("not run")
    counted = scores.where(~states.isin(LAST))
    sign = 1.0 if direction == "lower" else -1.0
    ranks = _rank(sign * counted, states == "not applicable", gold)
    typical = scores.median(axis=1)
    medians = scores.where(ranks.notna()).median(axis=1).fillna(typical)
    keys = pd.DataFrame({"rank": ranks.mean(axis=1), "typical": sign * medians})
    order = keys.sort_values(["rank", "typical", "row"])
    if order.empty:
        return []
    levels = order.groupby("rank").groups
    places = order.groupby(["rank", "typical"], dropna=False).ngroup().rank(method="min")
    is_shared = places.duplicated(keep=False)
    costs = results.drop(columns=["score", "state"]).groupby("row").median().to_dict("index")
    ends = count_states(results)
    # median differences from the reference row over common problems
    by_row = {str(row): each.dropna().to_dict() for row, each in counted.iterrows()}
    base = by_row.pop(reference or order.index[0], {})
    tests = holm({row: compare(each, base) for row, each in by_row.items()})
    differences = counted.sub(pd.Series(base, dtype=float)).median(axis=1)
    against = {row: replace(test, difference=differences[row]) for row, test in tests.items()}
    return [
        Standing(
            row,
            f"{places[row]:.0f}{'=' if is_shared[row] else ''}" if rank in levels else "–",
            rank,
            typical[row],
            ends[row],
            ranks.loc[row].dropna().to_dict(),
            costs[row],
            median_interval(scores.T[row].dropna()),
            against.get(row),
            tuple(other for other in levels.get(rank, ()) if other != row),
        )
        for row, rank in zip(map(str, order.index), order["rank"], strict=True)
    ]


def _rank(losses: pd.DataFrame, is_off: pd.DataFrame, gold: str | None) -> pd.DataFrame:
    """Ranks [rows, problems] of the placed rows on the problems that apply to all of them; ties
    share a rank, and NaN means no rank.

    ``is_off`` is True where a problem does not apply."""
    has_place = is_off.sum(axis=1) <= MOST_NOT_APPLICABLE * is_off.shape[1]
    placed = has_place & (losses.index != gold)
    shared = ~is_off[placed].any()
    ranks = losses.loc[placed, shared].fillna(math.inf).rank()
    return ranks.reindex_like(losses)


def median_interval(values: Sequence[float] | pd.Series[float]) -> tuple[float, float]:
    """Percentile bootstrap interval of the median over problems; NaN for fewer than three problems."""
    if len(values) < 3:
        return (math.nan, math.nan)
    resampled = bootstrap(
        (np.array(values),),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    low, high = resampled.confidence_interval
    return float(low), float(high)
