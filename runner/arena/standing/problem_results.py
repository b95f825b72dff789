"""Results of rows on the problems of a suite: means over replicates, costs and states."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from components.metrics.names import COST_PREFIX
from runner.arena.scores import SCORED, Line, is_finite

DIVERGED = 1e6  # times the median size of the scores of all rows on a problem


@dataclass(frozen=True)
class ProblemResult:
    """One row on one problem: mean score over replicates, mean costs, and state."""

    state: str
    score: float = math.nan
    costs: dict[str, float] = field(default_factory=dict)
    path: list[tuple[dict[str, float], float]] = field(default_factory=list)  # of its evaluations


def gather(lines: Sequence[Line], metric: str) -> dict[str, dict[str, ProblemResult]]:
    """Results by row and problem; a row that lacks replicates of a problem is incomplete there."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.row, line.problem), []).append(line)
    results: dict[str, dict[str, ProblemResult]] = {}
    for (row, problem), group in groups.items():
        results.setdefault(row, {})[problem] = _result(group, metric)
    counts = {place: sum(line.is_final for line in group) for place, group in groups.items()}
    most: dict[str, int] = {}
    for (_, problem), n in counts.items():
        most[problem] = max(n, most.get(problem, 0))
    for (row, problem), n in counts.items():
        result = results[row][problem]
        if n < most[problem] and result.state in SCORED:
            results[row][problem] = replace(result, state="incomplete", score=math.nan)
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


def mark_diverged(
    results: dict[str, dict[str, ProblemResult]],
) -> dict[str, dict[str, ProblemResult]]:
    """Results in which a score that is infinite, or a million times the median size of the others,
    is a divergence."""
    sizes: dict[str, list[float]] = {}
    for by_problem in results.values():
        for problem, result in by_problem.items():
            if is_finite(result.score):
                sizes.setdefault(problem, []).append(abs(result.score))
    limits = {p: DIVERGED * statistics.median(each) or math.inf for p, each in sizes.items()}

    def mark(problem: str, result: ProblemResult) -> ProblemResult:
        is_far = abs(result.score) > limits.get(problem, math.inf) or math.isinf(result.score)
        return replace(result, state="diverged", score=math.nan) if is_far else result

    return {row: {p: mark(p, r) for p, r in by.items()} for row, by in results.items()}
