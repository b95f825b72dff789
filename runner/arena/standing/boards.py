"""Boards of a suite: rows ordered by solved problems and by the ranks of each score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from runner.arena.standing.problem_results import count_states, mean_results
from runner.arena.standing.solved import costs_to_solve, place_rows
from runner.arena.standing.standings import Standing, rank_rows
from runner.arena.suite import Suite
from runner.study.table_specs import PROBLEM_KEY, Row, TableSpec


@dataclass(frozen=True)
class Board:
    """Lines of one budget of a suite, and the resulting standings."""

    suite: Suite
    budget: str
    lines: pd.DataFrame
    user_rows: Sequence[Row] = ()
    command: str = ""  # that runs a row by its name; empty: runner arena run

    @cached_property
    def own(self) -> list[str]:
        """Names of the user's rows; other rows are compared with the first of them."""
        return [row.name for row in self.user_rows]

    @cached_property
    def results(self) -> pd.DataFrame:
        """Results by row and problem, from the score that determines the places."""
        solve = self.suite.solve
        return mean_results(self.lines, solve.metric if solve else self.suite.metrics[0])

    @cached_property
    def costs(self) -> dict[float, pd.DataFrame]:
        """Cost of solving each problem, by tolerance; the first tolerance decides the places.
        Empty if the suite does not define solved problems.
        """
        solve = self.suite.solve
        if solve is None or self.lines.empty:
            return {}
        replicates = self.suite.replicates or 1
        return {
            tolerance: costs_to_solve(self.lines, solve.metric, tolerance, replicates)
            for tolerance in solve.tolerances
        }

    @cached_property
    def solved(self) -> list[dict[Hashable, Any]]:
        """Rows in the order of their places.

        Keys: row, the keys of ``place_rows``, counts (solved problems at each tolerance),
        median_cost (over the solved problems, in gradients), states (number of problems in each
        state).
        """
        if self.suite.solve is None or not self.costs:
            return []
        first, *_ = self.costs.values()
        counts = zip(*(np.isfinite(each).sum(axis=1) for each in self.costs.values()), strict=True)
        states = count_states(self.results)
        board = place_rows(first).assign(
            counts=pd.Series([*counts], first.index),
            median_cost=first.replace(np.inf, np.nan).median(axis=1),
            states=pd.Series(states),
        )
        return board.reset_index().to_dict("records")

    def rank(self, table: TableSpec) -> list[Standing]:
        """Order rows by the ranks of the score of a table in ``suite.ranked``."""
        direction = table.column_direction(PROBLEM_KEY)
        reference = next(iter(self.own), None)
        return rank_rows(self.lines, str(table.metric), direction, reference, self.suite.gold)

    @property
    def leader(self) -> str | None:
        """Row in the first place; None if there are no rows."""
        if self.solved:
            return str(self.solved[0]["row"])
        return next((s.row for s in self.rank(self.suite.tables[0])), None)
