"""The board of problems solved, as the page of a suite shows it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runner.arena.scores import Line
from runner.arena.standing.solved import RowPlace, costs_to_solve, place_rows
from runner.arena.suite import Suite


@dataclass(frozen=True)
class SolvedRow:
    """One row of the board."""

    place: RowPlace
    counts: tuple[int, ...]  # problems solved at each tolerance
    median_cost: float  # over the problems that it solves, in gradients
    states: Counter[str]  # of its problems


def solved_rows(suite: Suite, lines: Sequence[Line]) -> list[SolvedRow]:
    """Rows in the order of their places; empty: problems of the suite cannot be solved."""
    if suite.solve is None:
        return []
    costs = [
        costs_to_solve(lines, suite.solve.metric, tolerance, suite.replicates or 1)
        for tolerance in suite.solve.tolerances
    ]
    counts = [{place.row: len(place.solved) for place in place_rows(each)} for each in costs]
    states = count_states(lines)
    rows = []
    for place in place_rows(costs[0]):
        solved = [costs[0][place.row][problem] for problem in place.solved]
        median = statistics.median(solved) if solved else math.nan
        each = tuple(count[place.row] for count in counts)
        rows.append(SolvedRow(place, each, median, states[place.row]))
    return rows


def count_states(lines: Sequence[Line]) -> dict[str, Counter[str]]:
    """Number of problems in each state, by row."""
    final = {(line.row, line.problem): line.state for line in lines if line.is_final}
    counts: dict[str, Counter[str]] = {line.row: Counter() for line in lines}
    for (row, _), state in final.items():
        counts[row][state] += 1
    return counts
