"""Standings of the rows of a suite by one of its scores.

A row's place follows from its mean rank over problems: on each problem rows are ranked by their
mean over replicates; a failed run and one over budget rank last, problems that a row is not
applicable to are left out of its mean.  Equal mean ranks are ordered by the median score over
problems.  Below the others are listed rows that failed their own
checks (†) on more than half of their problems, then rows with less than half of the problems.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import bootstrap, rankdata

from components.metrics.names import COST_PREFIX, ScoreDirection
from runner.arena.scores import Line, is_finite
from runner.statistics.paired_tests import PairedDifference, compare, holm

LEVEL = 0.9  # of a bootstrap interval
RESAMPLES = 999
TENTH = 0.1  # share of the leader's cost
LAST = ("failed", "over budget")  # states that rank last


@dataclass(frozen=True)
class ProblemResult:
    """One row on one problem: mean score over replicates, mean costs, and state."""

    state: str
    score: float = math.nan
    costs: dict[str, float] = field(default_factory=dict)
    path: list[tuple[dict[str, float], float]] = field(default_factory=list)  # of its evaluations


@dataclass(frozen=True)
class Standing:
    """One row over all problems."""

    row: str
    results: dict[str, ProblemResult]  # by problem
    ranks: dict[str, float]  # by problem
    n_problems: int = 0  # on which any row has a rank
    typical: float = math.nan  # median over problems
    interval: tuple[float, float] = (math.nan, math.nan)
    early: int = 0  # problems on which it has the leader's score at a tenth of the leader's cost
    against: PairedDifference | None = None  # from the reference row, over problems
    tied: tuple[str, ...] = ()  # rows of the same mean rank, in the order of their medians

    def count(self, *states: str) -> int:
        """Problems on which its runs ended so."""
        return sum(result.state in states for result in self.results.values())

    @property
    def mean_rank(self) -> float:
        """Mean rank; infinite if it has none."""
        return statistics.fmean(self.ranks.values()) if self.ranks else math.inf

    @property
    def is_doubted(self) -> bool:
        """True if its runs failed checks on more than half of the problems that it has."""
        return self.count("doubted") > len(self.ranks) / 2

    @property
    def is_partial(self) -> bool:
        """True if it has a rank on less than half of the problems."""
        return len(self.ranks) < self.n_problems / 2

    @property
    def is_below(self) -> bool:
        """True if it is listed below the others."""
        return self.is_partial or self.is_doubted

    def cost(self, kind: str) -> float:
        """Median of a cost over problems; NaN if it was not counted."""
        costs = [r.costs[kind] for r in self.results.values() if kind in r.costs]
        return statistics.median(costs) if costs else math.nan


def gather(lines: Sequence[Line], metric: str) -> dict[str, dict[str, ProblemResult]]:
    """Results by row and problem."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.row, line.problem), []).append(line)
    results: dict[str, dict[str, ProblemResult]] = {}
    for (row, problem), group in groups.items():
        results.setdefault(row, {})[problem] = _result(group, metric)
    return results


def _result(lines: list[Line], metric: str) -> ProblemResult:
    final = [line for line in lines if line.is_final]
    state = final[0].state if final else "not run"
    steps: dict[int, list[Line]] = {}
    for line in lines:
        if not line.is_final:
            steps.setdefault(line.step, []).append(line)
    path = [(_mean_costs(each), _mean(each, metric)) for _, each in sorted(steps.items())]
    return ProblemResult(state, _mean(final, metric), _mean_costs(final), path)


def _mean(lines: list[Line], metric: str) -> float:
    """Mean over replicates; infinite replicates make it infinite, a missing one NaN."""
    values = [line.values.get(metric, math.nan) for line in lines]
    return statistics.fmean(values) if values else math.nan


def _mean_costs(lines: list[Line]) -> dict[str, float]:
    kinds = {metric for line in lines for metric in line.values if metric.startswith(COST_PREFIX)}
    return {kind.removeprefix(COST_PREFIX): _mean(lines, kind) for kind in sorted(kinds)}


def rank_rows(
    lines: Sequence[Line], metric: str, direction: ScoreDirection, reference: str | None = None
) -> list[Standing]:
    """All rows with a rank in the order of their places, then the others.

    ``reference``: the row that the others are compared with; None: the leader.
    """
    results = gather(lines, metric)
    sign = 1.0 if direction == "lower" else -1.0
    problems = list(dict.fromkeys(line.problem for line in lines))
    ranks: dict[str, dict[str, float]] = {row: {} for row in results}
    for problem in problems:
        for row, rank in _rank(results, problem, sign).items():
            ranks[row][problem] = rank
    n = len({problem for by_problem in ranks.values() for problem in by_problem})
    standings = [replace(_standing(row, results[row], ranks[row]), n_problems=n) for row in results]
    standings.sort(key=lambda s: (_rank_key(s), *_typical_key(s, sign), s.row))
    if not standings:
        return []
    tied = _tied(standings)
    early = _count_early(standings, problems, sign)
    against = _compare(standings, reference or standings[0].row)
    return [
        replace(s, early=early[s.row], against=against.get(s.row), tied=tied.get(s.row, ()))
        for s in standings
    ]


def _rank_key(standing: Standing) -> tuple[bool, bool, bool, float]:
    """Order of a row before ties are broken: rows with a rank first, those listed below last."""
    return (not standing.ranks, standing.is_partial, standing.is_doubted, standing.mean_rank)


def _typical_key(standing: Standing, sign: float) -> tuple[bool, float]:
    """Order of rows that are tied: the better median first, rows without one last."""
    is_missing = math.isnan(standing.typical)
    return (is_missing, 0.0 if is_missing else sign * standing.typical)


def _tied(standings: list[Standing]) -> dict[str, tuple[str, ...]]:
    """The other rows of the same mean rank, of each row with such."""
    groups: dict[tuple[bool, bool, bool, float], list[str]] = {}
    for standing in standings:
        if standing.ranks:
            groups.setdefault(_rank_key(standing), []).append(standing.row)
    return {
        row: tuple(other for other in group if other != row)
        for group in groups.values()
        for row in group
        if len(group) > 1
    }


def _rank(
    results: dict[str, dict[str, ProblemResult]], problem: str, sign: float
) -> dict[str, float]:
    """Ranks of the rows on a problem, ties sharing theirs; 1 is best.  None if no row has a score
    there."""
    losses = {}
    for row, by_problem in results.items():
        result = by_problem.get(problem)
        if result is None or result.state in ("not applicable", "not run"):
            continue
        if result.state in LAST or math.isinf(result.score):
            losses[row] = math.inf
        elif is_finite(result.score):
            losses[row] = sign * result.score
    if not any(map(math.isfinite, losses.values())):  # the problem has no such score
        return {}
    ranks = rankdata(list(losses.values()))
    return dict(zip(losses, map(float, ranks), strict=True))


def _standing(row: str, results: dict[str, ProblemResult], ranks: dict[str, float]) -> Standing:
    values = [results[p].score for p in ranks if is_finite(results[p].score)]
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


def _count_early(standings: list[Standing], problems: list[str], sign: float) -> dict[str, int]:
    """Problems on which each row has, at a tenth of the best row's cost, a score as good.

    Every cost that both rows have must be at most a tenth."""
    early = dict.fromkeys((s.row for s in standings), 0)
    for problem in problems:
        best = min(
            (s.results[problem] for s in standings if _counts(s, problem)),
            key=lambda result: sign * result.score,
            default=None,
        )
        for standing in standings if best else ():
            result = standing.results.get(problem)
            if result and best and _reaches(result, best, sign):
                early[standing.row] += 1
    return early


def _counts(standing: Standing, problem: str) -> bool:
    result = standing.results.get(problem)
    return (
        problem in standing.ranks
        and result is not None
        and is_finite(result.score)
        and result.state not in LAST
    )


def _reaches(result: ProblemResult, best: ProblemResult, sign: float) -> bool:
    for costs, score in result.path:
        shared = costs.keys() & best.costs.keys()
        cheap = all(costs[kind] <= TENTH * best.costs[kind] for kind in shared)
        if shared and cheap and is_finite(score) and sign * score <= sign * best.score:
            return True
    return False


def _compare(standings: list[Standing], reference: str) -> dict[str, PairedDifference]:
    """Differences of the rows from the reference row over the problems that both have, with p of
    Wilcoxon's test corrected for their number by Holm."""
    keys = {p: i for i, p in enumerate(dict.fromkeys(p for s in standings for p in s.results))}
    scores = {
        s.row: {(keys[p], 0): s.results[p].score for p in s.results if _counts(s, p)}
        for s in standings
    }
    base = scores.pop(reference, {})
    return holm({row: compare(values, base) for row, values in scores.items()})
