"""Standings of a suite whose problems can be solved: by problems solved and by the cost to solve.

A replicate solves a problem at the cost from which on its error stays below a tolerance to the end
of its budget.  The cost is counted in gradients, an evaluation of the density without its gradient
as a third of one; the warm-up is part of it.  A run that failed, overspent, has no score or does
not apply has an infinite cost, and so has a replicate that is missing.  The cost of a row on a
problem is the median over the replicates of the suite.

Rows are ordered by the problems that they solve, then by the geometric mean of their cost over that
of the best row, on the problems that both solve.  Failed checks move no row.

Source: Dolan & Moré (2002) for performance profiles.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.metrics.names import COST_PREFIX
from runner.arena.scores import Line, is_finite

DENSITY = 1 / 3  # cost of an evaluation of the density, in gradients

Costs = dict[str, dict[str, float]]  # row -> problem -> cost to solve; infinite: not solved


def count_evaluations(values: Mapping[str, float]) -> float:
    """Cost of a line in gradients; NaN where none was counted."""
    gradients = values.get(f"{COST_PREFIX}gradients", 0.0)
    densities = values.get(f"{COST_PREFIX}densities", 0.0)
    total = gradients + DENSITY * max(0.0, densities - gradients)
    return total if total > 0 else math.nan


def cost_of_replicate(lines: Sequence[Line], metric: str, tolerance: float) -> float:
    """Cost from which on the error of one replicate stays below a tolerance; infinite if its final
    error does not."""
    cost = math.inf
    for line in sorted(lines, key=lambda line: (line.is_final, line.step), reverse=True):
        if not line.values.get(metric, math.inf) < tolerance:  # a NaN is not below it
            break
        cost = count_evaluations(line.values)
    return cost if is_finite(cost) else math.inf


def costs_to_solve(lines: Sequence[Line], metric: str, tolerance: float, replicates: int) -> Costs:
    """Median cost over the replicates of a suite, by row and problem."""
    groups: dict[tuple[str, str], dict[tuple[int, int], list[Line]]] = {}
    for line in lines:
        runs = groups.setdefault((line.row, line.problem), {})
        runs.setdefault((line.seed, line.replicate), []).append(line)
    costs: Costs = {}
    for (row, problem), runs in groups.items():
        each = [
            cost_of_replicate(run, metric, tolerance)
            if all(line.state in ("done", "doubted") for line in run)
            else math.inf
            for run in runs.values()
        ]
        each += [math.inf] * (replicates - len(each))
        costs.setdefault(row, {})[problem] = statistics.median(each)
    return costs


@dataclass(frozen=True)
class RowPlace:
    """One row among the others at one tolerance."""

    row: str
    place: int  # 1 is best; rows that are level share theirs
    solved: tuple[str, ...]  # problems
    ratio: float  # geometric mean of its cost over the best row's; NaN: no problem in common


def place_rows(costs: Costs) -> list[RowPlace]:
    """Rows in the order of problems solved and of the cost to solve them."""
    solved = {row: {p for p, c in by.items() if math.isfinite(c)} for row, by in costs.items()}
    most = max(map(len, solved.values()), default=0)
    leaders = [row for row in costs if len(solved[row]) == most]
    best = min(leaders, key=lambda row: (_mean_ratio(costs, row), row), default="")

    def ratio(row: str) -> float:
        return _compare(costs[row], costs[best], solved[row] & solved[best])

    keys = {row: (-len(solved[row]), _last(ratio(row))) for row in costs}
    ordered = sorted(costs, key=lambda row: (keys[row], row))
    places: list[RowPlace] = []
    for i, row in enumerate(ordered):
        is_level = i > 0 and keys[row] == keys[ordered[i - 1]]
        place = places[-1].place if is_level else i + 1
        places.append(RowPlace(row, place, tuple(sorted(solved[row])), ratio(row)))
    return places


def _last(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _compare(own: Mapping[str, float], other: Mapping[str, float], problems: set[str]) -> float:
    """Geometric mean of the ratios of two rows' costs; NaN without a problem."""
    if not problems:
        return math.nan
    return math.exp(statistics.fmean(math.log(own[p] / other[p]) for p in sorted(problems)))


def performance_ratios(costs: Costs) -> Costs:
    """r = cost over the least cost of any row on the problem; infinite where it is not solved.

    Problems that no row solves stay in, as infinite for all."""
    problems = sorted({p for by_problem in costs.values() for p in by_problem})
    least = {p: min(by.get(p, math.inf) for by in costs.values()) for p in problems}
    return {
        row: {
            p: by.get(p, math.inf) / least[p] if math.isfinite(least[p]) else math.inf
            for p in problems
        }
        for row, by in costs.items()
    }


def _mean_ratio(costs: Costs, row: str) -> float:
    """Geometric mean of a row's performance ratios on the problems that it solves."""
    ratios = [r for r in performance_ratios(costs)[row].values() if math.isfinite(r)]
    return _last(statistics.geometric_mean(ratios) if ratios else math.nan)
