"""The arena on the terminal: the list of suites, the plan of a row, its places, and the first rows of
a board."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.scores import final_lines, read_kept_lines
from runner.arena.standing.boards import costs_by_tolerance, find_leader, rank_table, solved_rows
from runner.arena.standing.standings import Standing
from runner.arena.suite import GROUP, Suite, load_suite
from runner.disk import conf_folders
from runner.report.scores.cells import FAILED_CHECK_MARK
from runner.study.table_specs import Row
from runner.terminal.printer import number, out
from runner.terminal.tables import print_table

SHOWN = 10  # rows of the board on the terminal, apart from the user's
STATE_WORDS = {"doubted": "checks failed (†)", "short": "too few steps (¶)"}
CPU_SECONDS = "cpu_seconds"  # the cost that hours are made of
START_SECONDS = 15.0  # CPU seconds of a run outside its steps: imports, evaluations


def list_suites() -> int:
    """Print every suite with its measure, its leader and the time of a row on this machine."""
    rows = [_describe_suite(load_suite(name)) for name in conf_folders.names(GROUP)]
    print_table("arena", ("suite", "measures", "size", "leads", "time of a row"), rows)
    return 0


def _describe_suite(suite: Suite) -> list[str]:
    """A suite's line of the list; the last budget with kept scores decides who leads."""
    kept = dict(list(read_kept_lines(suite).groupby("budget", sort=False)))
    budgets = suite.order_budgets(kept)
    times = ((budget, time_of_row(suite, kept[budget])) for budget in budgets)
    listing = ", ".join(f"{budget} {time}".strip() for budget, time in times if time)
    leader = find_leader(suite, kept[budgets[-1]]) if budgets else None
    size = f"{len(suite.problems)} problems, {len(suite.rows)} rows"
    return [suite.name, suite.measures, size, leader or "–", listing or "–"]


def time_of_row(suite: Suite, lines: pd.DataFrame) -> str:
    """Time that a row takes on all cores, by the CPU seconds of the kept ones; empty: not
    counted."""
    spent = final_lines(lines).reindex(columns=["row", COST_PREFIX + CPU_SECONDS])
    typical = spent.groupby("row").sum().median().item()
    if not typical > 0:
        return ""
    minutes = (typical + START_SECONDS * len(suite.problems)) / 60 / (os.cpu_count() or 1)
    return f"{minutes / 60:.1f} h" if minutes > 90 else f"{math.ceil(minutes)} min"


def print_plan(suite: Suite, budget: str, row: Row, jobs: int) -> None:
    """Print the planned runs, before their lengths are measured."""
    n = suite.replicates or 1
    out.print(
        f"plan     {row.name} on {len(suite.problems)} problems of {_title(suite, budget)}, "
        f"{n} replicate{'s' if n > 1 else ''} each, {jobs} at once"
    )
    if time := time_of_row(suite, read_kept_lines(suite).query("budget == @budget")):
        out.print(f"time     {time} for a typical kept row, on all cores of this machine")


def _title(suite: Suite, budget: str) -> str:
    return ", budget ".join(filter(None, (suite.name, budget)))


def amount(value: float) -> str:
    """A cost or a score; a dash if it is not finite."""
    return number(value) if math.isfinite(value) else "–"


def tabulate_board(
    suite: Suite,
    solved: Sequence[Mapping[Hashable, Any]],
    standings: Sequence[Standing],
    own: Sequence[str],
) -> tuple[list[str], list[list[str]], int]:
    """Header and cells of the first rows of the board and of the user's, and the number of rows:
    problems solved and costs, or mean ranks."""
    if solved and suite.solve:
        counts = [f"< {number(t)}" for t in suite.solve.tolerances]
        header = ["place", "row", *counts, "ratio", "gradients", FAILED_CHECK_MARK]
        rows = [
            [
                str(each["place"]),
                each["row"],
                *map(str, each["counts"]),
                amount(each["ratio"]),
                amount(each["median_cost"]),
                str(each["states"]["doubted"] or "–"),
            ]
            for each in solved
        ]
    else:
        header = ["place", "row", "mean rank", f"median {suite.metrics[0]}", FAILED_CHECK_MARK]
        rows = [
            [
                s.place,
                s.row,
                f"{s.mean_rank:.1f}" if s.ranks else "–",
                amount(s.typical),
                str(s.states["doubted"] or "–"),
            ]
            for s in standings
            if s.ranks or s.row in own
        ]
    return header, [r for i, r in enumerate(rows) if i < SHOWN or r[1] in own], len(rows)


def print_board(suite: Suite, budget: str, lines: pd.DataFrame, own: Sequence[str]) -> None:
    """The first rows of the board and the user's, with the problems on which these are not done."""
    solved = solved_rows(suite, costs_by_tolerance(suite, lines), lines)
    standings = [] if solved else rank_table(suite, suite.tables[0], lines)
    header, shown, n_rows = tabulate_board(suite, solved, standings, own)
    print_table(_title(suite, budget), header, shown)
    if solved and suite.solve:
        out.print(
            f"columns  < t: problems of {len(suite.problems)} solved to {suite.solve.metric} < t; "
            "ratio: of costs to the leader's, where both solve; gradients: median to solve; "
            f"{FAILED_CHECK_MARK}: problems on which checks failed"
        )
    if n_rows > len(shown):
        out.print(f"rows     {n_rows}, all shown on the page")
    unfinished = lines[lines["row"].isin(own) & (lines["state"] != "done")]
    for (row, state), group in unfinished.groupby(["row", "state"], sort=False):
        names = ", ".join(group["problem"].unique())
        out.print(f"problems of {row}, {STATE_WORDS.get(str(state), state)}: {names}")


def print_row(suite: Suite, budget: str, lines: pd.DataFrame, row: str, flags: str) -> None:
    """The board with a row, and the command of the page, with flags."""
    print_board(suite, budget, lines, [row])
    out.print(f"page     runner arena show {suite.name}{flags}")
