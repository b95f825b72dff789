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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.metrics.names import COST_PREFIX
from runner.arena.scores import SCORED, Line, is_finite

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
            if all(line.state in SCORED for line in run)
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
    ratio: float  # geometric mean of its cost over the best row's; infinite: no problem in common


def place_rows(costs: Costs) -> list[RowPlace]:
    """Rows in the order of problems solved and of the cost to solve them."""
    solved = {row: {p: c for p, c in by.items() if math.isfinite(c)} for row, by in costs.items()}
    least = {
        row: _mean_finite(ratios.values()) for row, ratios in performance_ratios(costs).items()
    }
    best = min(costs, key=lambda row: (-len(solved[row]), least[row], row), default="")
    ratios = {
        row: _mean_finite(c / solved[best][p] for p, c in own.items() if p in solved[best])
        for row, own in solved.items()
    }
    keys = {row: (-len(solved[row]), ratios[row]) for row in costs}
    places: list[RowPlace] = []
    for i, row in enumerate(sorted(costs, key=lambda row: (keys[row], row)), 1):
        is_level = places and keys[row] == keys[places[-1].row]
        place = places[-1].place if is_level else i
        places.append(RowPlace(row, place, tuple(sorted(solved[row])), ratios[row]))
    return places


def _mean_finite(ratios: Iterable[float]) -> float:
    """Geometric mean of the finite ratios; infinite without one, so that it comes last."""
    finite = [r for r in ratios if math.isfinite(r)]
    return statistics.geometric_mean(finite) if finite else math.inf


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
