"""The board of problems solved, as the page of a suite shows it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from runner.arena.standing.problem_results import count_states, mark_diverged, mean_results
from runner.arena.standing.solved import costs_to_solve, place_rows
from runner.arena.standing.standings import Standing, rank_rows
from runner.arena.suite import Suite
from runner.study.table_specs import TableSpec


def costs_by_tolerance(
    suite: Suite, lines: pd.DataFrame, most: int | None = None
) -> dict[float, pd.DataFrame]:
    """Costs to solve at each tolerance, or at the first ``most``; the first decides the places.
    Empty: problems of the suite cannot be solved."""
    if suite.solve is None or lines.empty:
        return {}
    metric = suite.solve.metric
    replicates = suite.replicates or 1
    return {t: costs_to_solve(lines, metric, t, replicates) for t in suite.solve.tolerances[:most]}


def find_leader(suite: Suite, lines: pd.DataFrame) -> str | None:
    """The row in the first place: by problems solved at the first tolerance, or by the ranks of the
    first score."""
    if costs := costs_by_tolerance(suite, lines, 1):
        (first,) = costs.values()
        return str(place_rows(first).index[0])
    standings = rank_table(suite, suite.tables[0], lines)
    return standings[0].row if standings else None


def rank_table(
    suite: Suite, table: TableSpec, lines: pd.DataFrame, reference: str | None = None
) -> list[Standing]:
    """Rows by the ranks of the score of a table in ``suite.ranked``."""
    return rank_rows(lines, str(table.metric), suite.direction(table), reference, suite.gold)


def solved_rows(
    suite: Suite, by_tolerance: Mapping[float, pd.DataFrame], lines: pd.DataFrame
) -> list[dict[Hashable, Any]]:
    """Rows in the order of their places.

    Keys: row, the keys of ``place_rows``, counts (of problems solved at each tolerance),
    median_cost (over the problems that it solves, in gradients), states (its number of
    problems in each).
    """
    if suite.solve is None or not by_tolerance:
        return []
    costs = next(iter(by_tolerance.values()))
    counts = zip(*(np.isfinite(each).sum(axis=1) for each in by_tolerance.values()), strict=True)
    medians = costs.replace(np.inf, np.nan).median(axis=1)
    states = count_states(mark_diverged(mean_results(lines, suite.solve.metric)))
    more = {"median_cost": medians, "states": pd.Series(states)}
    board = place_rows(costs).assign(counts=pd.Series([*counts], costs.index), **more)
    return board.reset_index().to_dict("records")
