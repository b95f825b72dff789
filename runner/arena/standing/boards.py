"""The board of problems solved, as the page of a suite shows it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.arena.scores import Line
from runner.arena.standing.solved import Costs, RowPlace, costs_to_solve, place_rows
from runner.arena.standing.standings import Standing, rank_rows
from runner.arena.suite import Suite
from runner.study.table_specs import TableSpec


@dataclass(frozen=True)
class SolvedRow:
    """One row of the board."""

    place: RowPlace
    counts: tuple[int, ...]  # problems solved at each tolerance
    median_cost: float  # over the problems that it solves, in gradients
    states: Counter[str]  # of its problems


def costs_by_tolerance(
    suite: Suite, lines: Sequence[Line], most: int | None = None
) -> dict[float, Costs]:
    """Costs to solve at each tolerance, or at the first ``most``; the first decides the places.
    Empty: problems of the suite cannot be solved."""
    if suite.solve is None or not lines:
        return {}
    metric, replicates = suite.solve.metric, suite.replicates or 1
    return {t: costs_to_solve(lines, metric, t, replicates) for t in suite.solve.tolerances[:most]}


def find_leader(suite: Suite, lines: Sequence[Line]) -> str | None:
    """The row in the first place: by problems solved at the first tolerance, or by the ranks of the
    first score."""
    if costs := costs_by_tolerance(suite, lines, 1):
        (first,) = costs.values()
        return place_rows(first)[0].row
    standings = rank_table(suite, suite.tables[0], lines)
    return standings[0].row if standings else None


def rank_table(
    suite: Suite, table: TableSpec, lines: Sequence[Line], reference: str | None = None
) -> list[Standing]:
    """Rows by the ranks of the score of a table in ``suite.ranked``."""
    return rank_rows(lines, str(table.metric), suite.direction(table), reference, suite.gold)


def solved_rows(by_tolerance: Mapping[float, Costs], lines: Sequence[Line]) -> list[SolvedRow]:
    """Rows in the order of their places."""
    if not by_tolerance:
        return []
    costs = next(iter(by_tolerance.values()))
    states = count_states(lines)
    rows = []
    for place in place_rows(costs):
        solved = [costs[place.row][problem] for problem in place.solved]
        median = statistics.median(solved) if solved else math.nan
        counts = tuple(
            sum(map(math.isfinite, each[place.row].values())) for each in by_tolerance.values()
        )
        rows.append(SolvedRow(place, counts, median, states[place.row]))
    return rows


def count_states(lines: Sequence[Line]) -> dict[str, Counter[str]]:
    """Number of problems in each state, by row."""
    final = {(line.row, line.problem): line.state for line in lines if line.is_final}
    counts: dict[str, Counter[str]] = {line.row: Counter() for line in lines}
    for (row, _), state in final.items():
        counts[row][state] += 1
    return counts
