"""Terminal output of the arena: list of suites, plan of a row, its places, and the first rows of a
board.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Sequence

import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.scores import final_lines, read_kept_lines
from runner.arena.standing.boards import Board
from runner.arena.standing.standings import Standing
from runner.arena.suite import GROUP, Suite, load_suite
from runner.disk import conf_folders
from runner.report.scores.cells import FAILED_CHECK_MARK
from runner.study.table_specs import Row
from runner.terminal.printer import number
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_fact, print_table

SHOWN = 10  # rows of the board on the terminal, apart from the user's
STATE_WORDS = {"doubted": "checks failed (†)", "short": "too few steps (¶)"}
NAME_WIDTH = 18  # columns of a suite's name in the list
CPU_SECONDS = "cpu_seconds"  # the cost that hours are made of
START_SECONDS = 15.0  # CPU seconds of a run outside its steps: imports, evaluations
LISTED = ("suite", "measures", "size", "leader", "time")  # keys of a suite in JSON


def list_suites() -> int:
    """Print each suite with its metric, its leader and the time of a row on this machine; in a
    pipe, one line per suite.
    """
    for suite in map(load_suite, conf_folders.names(GROUP)):
        cells = _describe_suite(suite)
        if is_terminal(sys.stdout):
            print_fact(f"{suite.name:<{NAME_WIDTH}}", suite.measures)
            print_fact(" " * NAME_WIDTH, "; ".join(filter(None, cells)))
        else:
            print_table("", LISTED, [[suite.name, suite.measures, *cells]])
    return 0


def _describe_suite(suite: Suite) -> list[str]:
    """Size, leader and times of a suite; the last budget with kept scores decides the leader."""
    kept = dict(list(read_kept_lines(suite).groupby("budget", sort=False)))
    budgets = suite.order_budgets(kept)
    times = ((budget, time_of_row(kept[budget], suite.problems)) for budget in budgets)
    listing = ", ".join(f"{time} ({budget})".removesuffix(" ()") for budget, time in times if time)
    leader = Board(suite, "", kept[budgets[-1]]).leader if budgets else None
    n_scored = kept[budgets[-1]]["row"].nunique() if budgets else 0
    size = f"{len(suite.problems)} problems, {n_scored} of {len(suite.rows)} rows have scores"
    return [
        size,
        f"leader: {leader}" if leader else "",
        f"a row takes {listing}" if listing else "",
    ]


def time_of_row(lines: pd.DataFrame, problems: Collection[str], jobs: int | None = None) -> str:
    """Time of a row with ``jobs`` parallel runs (default: one per core), from the median CPU
    seconds of the kept rows on each problem; empty if they were not counted.
    """
    seconds = final_lines(lines).reindex(columns=["row", "problem", COST_PREFIX + CPU_SECONDS])
    spent = seconds[seconds["problem"].isin(problems)].groupby(["problem", "row"]).sum()
    total = spent.groupby("problem").median().to_numpy().sum()
    if not total > 0:
        return ""
    at_once = min(jobs or os.cpu_count() or 1, len(problems))
    minutes = (total + START_SECONDS * len(problems)) / 60 / at_once
    return f"{minutes / 60:.1f} h" if minutes > 90 else f"{math.ceil(minutes)} min"


def print_plan(suite: Suite, budget: str, row: Row, problems: Sequence[str], jobs: int) -> None:
    """Print the planned runs, before their lengths are measured."""
    n = suite.replicates or 1
    print_fact(
        "plan     ",
        f"{row.name}: {len(problems)} of {len(suite.problems)} problems of "
        f"{_title(suite, budget)}, {n} replicate{'s' if n > 1 else ''} each, {jobs} in parallel",
    )
    kept = read_kept_lines(suite).query("budget == @budget")
    if time := time_of_row(kept, problems, jobs):
        print_fact("time     ", f"about {time}, estimated from the CPU seconds of the kept rows")


def _title(suite: Suite, budget: str) -> str:
    return ", budget ".join(filter(None, (suite.name, budget)))


def amount(value: float) -> str:
    """Format a cost or a score, a dash if it is not finite."""
    return number(value) if math.isfinite(value) else "–"


def rank_cells(standing: Standing) -> list[str]:
    """Mean rank and median score of a row; dashes for missing values."""
    rank = f"{standing.mean_rank:.1f}" if standing.ranks else "–"
    return [rank, amount(standing.typical)]


def tabulate_board(
    board: Board, standings: Sequence[Standing]
) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the first rows of the board and of the user's rows: solved problems and
    costs, or mean ranks (``standings`` by the first score).
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
            for s in standings
            if s.ranks or s.row in board.own
        ]
    shown = [cells for i, cells in enumerate(rows) if i < SHOWN or cells[1] in board.own]
    return ["place", "row", *columns, FAILED_CHECK_MARK], shown


def print_board(board: Board) -> None:
    """Print the first rows of the board and the user's rows, with the unfinished problems of the
    latter.
    """
    suite = board.suite
    standings = [] if board.solved else board.rank(suite.tables[0])
    header, shown = tabulate_board(board, standings)
    print_table(_title(suite, board.budget), header, shown)
    meaning = (
        f"< t: problems (of {len(suite.problems)}) with {suite.solve.metric} below t to the end; "
        "ratio: cost over the leader's, on problems that both solve; gradients: median cost to solve"
        if board.solved and suite.solve
        else "1 is the best rank; median: over problems"
    )
    print_fact("columns  ", f"{meaning}; {FAILED_CHECK_MARK}: problems on which checks failed")
    print_fact("rows     ", f"{len(shown)} of {board.lines['row'].nunique()}; the page shows all")
    is_unfinished = board.lines["row"].isin(board.own) & (board.lines["state"] != "done")
    unfinished = board.lines[is_unfinished]
    for (row, state), group in unfinished.groupby(["row", "state"], sort=False):
        names = ", ".join(group["problem"].unique())
        print_fact("problems ", f"of {row}, {STATE_WORDS.get(str(state), state)}: {names}")
