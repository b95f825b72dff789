"""Standings of the rows of a suite by the ranks of one of its scores.

A row's place follows from its mean rank over the problems that apply to all rows that have a place:
on each of them rows are ranked by their mean over replicates.  A run that failed, overspent,
diverged, lacks a replicate or has no score ranks last.  A row that does not apply to more than a third of the problems
has no place, nor has the gold row, which the others are compared with.  Equal mean ranks are
ordered by the median score over problems.  Failed checks (†) move no row.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import bootstrap, rankdata

from components.metrics.names import ScoreDirection
from runner.arena.scores import Line, is_finite
from runner.arena.standing.problem_results import ProblemResult, gather, mark_diverged
from runner.statistics.paired_tests import PairedDifference, compare, holm

LEVEL = 0.9  # of a bootstrap interval
RESAMPLES = 999
LAST = ("failed", "over budget", "not run", "diverged", "incomplete")  # states that rank last
MOST_NOT_APPLICABLE = 1 / 3  # of the problems


@dataclass(frozen=True)
class Standing:
    """One row over all problems."""

    row: str
    results: dict[str, ProblemResult]  # by problem
    ranks: dict[str, float]  # by problem; none: it has no place
    typical: float = math.nan  # median over problems
    interval: tuple[float, float] = (math.nan, math.nan)
    against: PairedDifference | None = None  # from the reference row, over problems
    tied: tuple[str, ...] = ()  # rows of the same mean rank, in the order of their medians

    def count(self, *states: str) -> int:
        """Problems on which its runs ended so."""
        return sum(result.state in states for result in self.results.values())

    @property
    def mean_rank(self) -> float:
        """Mean rank; infinite if it has none."""
        return statistics.fmean(self.ranks.values()) if self.ranks else math.inf

    def cost(self, kind: str) -> float:
        """Median of a cost over problems; NaN if it was not counted."""
        costs = [r.costs[kind] for r in self.results.values() if kind in r.costs]
        return statistics.median(costs) if costs else math.nan


def rank_rows(
    lines: Sequence[Line],
    metric: str,
    direction: ScoreDirection,
    reference: str | None = None,
    gold: str | None = None,
) -> list[Standing]:
    """All rows with a place in their order, then the others.

    ``reference``: the row that the others are compared with; None: the leader.
    """
    results = mark_diverged(gather(lines, metric))
    sign = 1.0 if direction == "lower" else -1.0
    problems = _list_scored(results)
    ranks = _rank_all(results, problems, sign, gold)
    standings = [_standing(row, results[row], ranks[row], problems) for row in results]
    standings.sort(key=lambda s: (s.mean_rank, *_typical_key(s, sign), s.row))
    if not standings:
        return []
    tied = _tied(standings)
    against = _compare(standings, reference or standings[0].row)
    return [replace(s, against=against.get(s.row), tied=tied.get(s.row, ())) for s in standings]


def _list_scored(results: dict[str, dict[str, ProblemResult]]) -> list[str]:
    """Problems on which some row has a score."""
    scored = [p for by in results.values() for p, result in by.items() if is_finite(result.score)]
    return list(dict.fromkeys(scored))


def _rank_all(
    results: dict[str, dict[str, ProblemResult]],
    problems: list[str],
    sign: float,
    gold: str | None,
) -> dict[str, dict[str, float]]:
    """Ranks by row and problem, of rows with a place on the problems that apply to all of them."""
    placed = {row: by for row, by in results.items() if row != gold and _has_place(by, problems)}
    ranks: dict[str, dict[str, float]] = {row: {} for row in results}
    for problem in problems:
        if all(_applies(by, problem) for by in placed.values()):
            for row, rank in _rank(placed, problem, sign).items():
                ranks[row][problem] = rank
    return ranks


def _applies(by_problem: dict[str, ProblemResult], problem: str) -> bool:
    return problem not in by_problem or by_problem[problem].state != "not applicable"


def _has_place(by_problem: dict[str, ProblemResult], problems: list[str]) -> bool:
    n = sum(not _applies(by_problem, p) for p in problems)
    return n <= MOST_NOT_APPLICABLE * len(problems)


def _typical_key(standing: Standing, sign: float) -> tuple[bool, float]:
    """Order of rows that are tied: the better median first, rows without one last."""
    is_missing = math.isnan(standing.typical)
    return (is_missing, 0.0 if is_missing else sign * standing.typical)


def _tied(standings: list[Standing]) -> dict[str, tuple[str, ...]]:
    """The other rows of the same mean rank, of each row with such."""
    groups: dict[float, list[str]] = {}
    for standing in standings:
        if standing.ranks:
            groups.setdefault(standing.mean_rank, []).append(standing.row)
    return {
        row: tuple(other for other in group if other != row)
        for group in groups.values()
        for row in group
        if len(group) > 1
    }


def _rank(
    results: dict[str, dict[str, ProblemResult]], problem: str, sign: float
) -> dict[str, float]:
    """Ranks of the rows on a problem, ties sharing theirs; 1 is best."""
    losses = {}
    for row, by_problem in results.items():
        result = by_problem.get(problem)
        counts = result is not None and result.state not in LAST and is_finite(result.score)
        losses[row] = sign * result.score if result and counts else math.inf
    ranks = rankdata(list(losses.values()))
    return dict(zip(losses, map(float, ranks), strict=True))


def _standing(
    row: str, results: dict[str, ProblemResult], ranks: dict[str, float], problems: list[str]
) -> Standing:
    values = [results[p].score for p in problems if p in results and is_finite(results[p].score)]
    if not values:
        return Standing(row, results, ranks)
    interval = median_interval(values)
    return Standing(row, results, ranks, typical=statistics.median(values), interval=interval)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Percentile bootstrap interval of the median over problems; NaN for fewer than three."""
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


def _counts(standing: Standing, problem: str) -> bool:
    result = standing.results.get(problem)
    return result is not None and is_finite(result.score) and result.state not in LAST


def _compare(standings: list[Standing], reference: str) -> dict[str, PairedDifference]:
    """Median differences of the rows from the reference row over the problems that both have, with
    p of Wilcoxon's test corrected for their number by Holm."""
    keys = {p: i for i, p in enumerate(dict.fromkeys(p for s in standings for p in s.results))}
    scores = {
        s.row: {(keys[p], 0): s.results[p].score for p in s.results if _counts(s, p)}
        for s in standings
    }
    base = scores.pop(reference, {})
    tests = holm({row: compare(values, base) for row, values in scores.items()})
    medians = {
        row: statistics.median(values[k] - base[k] for k in values.keys() & base.keys())
        for row, values in scores.items()
        if values.keys() & base.keys()
    }
    return {row: replace(t, difference=medians.get(row, math.nan)) for row, t in tests.items()}
