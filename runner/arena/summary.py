"""Terminal output of the arena: list of suites, plan of a row, its places, and the first rows of a
board.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection

import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.rows import name_row
from runner.arena.scores import final_lines, list_checks, read_kept_lines
from runner.arena.standing.boards import Board
from runner.arena.standing.standings import Standing
from runner.arena.suite import GROUP, Suite, load_suite
from runner.disk import conf_folders
from runner.report.scores.cells import FAILED_CHECK_MARK
from runner.study.choice import plan_selected_runs
from runner.study.pricing.study_records import format_seconds
from runner.study.table_specs import PROBLEM_KEY, Row
from runner.terminal.printer import number
from runner.terminal.tables import print_named, print_table

SHOWN = 10  # rows of the board on the terminal, apart from the user's
STATE_WORDS = {"doubted": "checks failed (†)", "short": "too few steps (¶)"}
CPU_SECONDS = "cpu_seconds"  # the cost that hours are made of
START_SECONDS = 15.0  # CPU seconds of a run outside its steps: imports, evaluations
UNKNOWN_TIME = "estimated after the first runs, because the suite has no kept scores"
TIME_SOURCE = "without finished runs, estimated from the CPU seconds of other rows"
LISTED = ("suite", "measures", "size", "leader", "time of a row")
BOARD = ("place", "row", FAILED_CHECK_MARK)  # columns of each board, apart from its scores


def list_suites() -> int:
    """Print each suite with its metric, its leader and the time of a row on this machine; in a
    pipe, one line per suite.  The last budget with kept scores decides the leader.
    """
    rows = []
    for suite in map(load_suite, conf_folders.names(GROUP)):
        lines = read_kept_lines(suite)
        budgets = suite.order_budgets({*lines["budget"]})
        listing = ", ".join(
            f"{time} ({budget})".removesuffix(" ()")
            for budget in budgets
            if (time := time_of_row(suite, budget, lines, suite.problems))
        )
        last = lines[lines["budget"].isin(budgets[-1:])]
        leader = Board(suite, "", last).leader
        size = f"{len(suite.problems)} problems, {last['row'].nunique()} of {len(suite.rows)} rows have scores"
        rows.append([suite.name, suite.measures, size, leader or "", listing])
    print_table("", LISTED, rows)
    return 0


def time_of_row(
    suite: Suite,
    budget: str,
    lines: pd.DataFrame,
    problems: Collection[str],
    jobs: int | None = None,
    names: Collection[str] = (),
) -> str:
    """Time of a row with ``jobs`` parallel runs (default: one per core), from the median CPU
    seconds on each problem of the rows in ``names``, or else of all rows; empty if they were not
    counted.

    Seconds are proportional to the limits of a budget, and the search for the lengths of the runs
    takes as long as a replicate.
    """
    sizes = {"": 1.0} | {name: sum(kinds.values()) for name, kinds in suite.budgets.items()}
    final = final_lines(lines[lines["problem"].isin(problems)])
    limits = final["budget"].map(sizes).astype(float)
    seconds = final.get(COST_PREFIX + CPU_SECONDS, math.nan) / limits
    spent = seconds.groupby([final["problem"], final["row"]]).mean() * sizes[budget]
    of_names = spent[spent.index.isin(names, level="row")].groupby("problem").median()
    replicate = of_names.combine_first(spent.groupby("problem").median()).sum()
    if not replicate > 0:
        return ""
    total = replicate * (suite.replicates or 1) + START_SECONDS * len(problems)
    at_once = min(jobs or os.cpu_count() or 1, len(problems))
    return format_seconds(total / at_once + (replicate if suite.budgets else 0.0))


def print_plan(suite: Suite, budget: str, row: Row, only: list[str], jobs: int) -> None:
    """Print the runs selected by ``only`` and their time, before their lengths are measured."""
    planned = plan_selected_runs(suite.to_study([row]), [], only)
    problems = [str(run.cell[PROBLEM_KEY]) for run in planned]
    print_named(
        "plan",
        f"{row.name}: {len(problems)} of {len(suite.problems)} problems of "
        f"{_title(suite, budget)}, replicates: {suite.replicates or 1}, {jobs} in parallel",
    )
    component = name_row(row.overrides)
    names = [each.name for each in suite.rows if name_row(each.overrides) == component]
    time = time_of_row(suite, budget, read_kept_lines(suite), problems, jobs, names)
    print_named("time", f"about {time}, {TIME_SOURCE}" if time else UNKNOWN_TIME)
    sys.stdout.flush()  # minutes without output follow


def _title(suite: Suite, budget: str) -> str:
    return ", budget ".join(filter(None, (suite.name, budget)))


def amount(value: float) -> str:
    """Format a cost or a score, a dash if it is not finite."""
    return number(value) if math.isfinite(value) else "–"


def rank_cells(standing: Standing) -> list[str]:
    """Mean rank and median score of a row; dashes for missing values."""
    rank = f"{standing.mean_rank:.1f}" if standing.ranks else "–"
    return [rank, amount(standing.typical)]


def tabulate_board(board: Board) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the first rows of the board and of the user's rows: solved problems and
    costs, or mean ranks by the first score.
    """
    if board.solved and board.suite.solve:
        columns = [f"< {number(t)}" for t in board.suite.solve.tolerances]
        columns += ["ratio", "gradients"]
        rows = [
            [
                str(each["place"]),
                each["row"],
                *map(str, each["counts"]),
                *map(amount, (each["ratio"], each["median_cost"])),
                str(each["states"]["doubted"] or "–"),
            ]
            for each in board.solved
        ]
    else:
        columns = ["mean rank", f"median {board.suite.metrics[0]}"]
        rows = [
            [s.place, s.row, *rank_cells(s), str(s.states["doubted"] or "–")]
            for s in board.rank(board.suite.tables[0])
            if s.ranks or s.row in board.own
        ]
    shown = [cells for i, cells in enumerate(rows) if i < SHOWN or cells[1] in board.own]
    return [*BOARD[:2], *columns, *BOARD[2:]], shown


def print_board(board: Board) -> None:
    """Print the first rows of the board and the user's rows, with the unfinished problems of the
    latter.
    """
    suite = board.suite
    header, shown = tabulate_board(board)
    print_table(_title(suite, board.budget), header, shown)
    meaning = (
        f"< t: problems (of {len(suite.problems)}) with {suite.solve.metric} below t to the end; "
        "ratio: cost over the leader's, on problems that both solve; gradients: median cost to solve"
        if board.solved and suite.solve
        else "1 is the best rank; median: over problems"
    )
    print_named("columns", f"{meaning}; {FAILED_CHECK_MARK}: problems on which checks failed")
    print_named("rows", f"{len(shown)} of {board.lines['row'].nunique()}; the page shows all")
    unfinished = board.results.query("row in @board.own and state != 'done'")
    for (row, state), group in unfinished.groupby(["row", "state"], sort=False):
        names = ", ".join(group.index.unique("problem"))
        print_named("problems", f"of {row}, {STATE_WORDS.get(str(state), state)}: {names}")
    for row, checks in list_checks(board.lines.query("row in @board.own")).items():
        print_named("checks", f"of {row}, failed: {checks}")
