"""What the terminal shows of a suite: the plan of a row, its places, and the first rows of the board."""

from __future__ import annotations

from collections.abc import Sequence

from runner.arena.listing import time_of_row
from runner.arena.scores import Line, read_kept_lines
from runner.arena.standing.boards import costs_by_tolerance, rank_table, solved_rows
from runner.arena.suite import Suite
from runner.study.table_specs import Row
from runner.terminal.printer import number, out
from runner.terminal.tables import print_table

SHOWN = 10  # rows of the board on the terminal, apart from the user's
STATE_WORDS = {"doubted": "checks failed (†)", "short": "too few steps (¶)"}


def print_plan(suite: Suite, budget: str, row: Row, jobs: int) -> None:
    """What is about to run, before the lengths of its runs are measured."""
    n = suite.replicates or 1
    out.print(
        f"plan     {row.name} on {len(suite.problems)} problems of {_title(suite, budget)}, "
        f"{n} replicate{'s' if n > 1 else ''} each, {jobs} at once"
    )
    if time := time_of_row(suite, [k for k in read_kept_lines(suite) if k.budget == budget]):
        out.print(f"time     {time} for a typical kept row, on all cores of this machine")


def _title(suite: Suite, budget: str) -> str:
    return ", budget ".join(filter(None, (suite.name, budget)))


def print_board(suite: Suite, budget: str, lines: list[Line], own: Sequence[str]) -> None:
    """The first rows of the board and the user's: problems solved and costs, or mean ranks."""
    by_tolerance = costs_by_tolerance(suite, lines)
    if by_tolerance:
        board = solved_rows(by_tolerance, lines)
        header = ["place", "row", *(f"solved, {number(t)}" for t in by_tolerance), "gradients"]
        rows = [
            [
                str(each.place.place),
                each.place.row,
                *map(str, each.counts),
                number(each.median_cost),
            ]
            for each in board
        ]
    else:
        table = suite.tables[0]
        standings = rank_table(suite, table, lines)
        header = ["place", "row", "mean rank", f"median {table.metric}"]
        rows = [
            [str(i), s.row, f"{s.mean_rank:.1f}", number(s.typical)]
            for i, s in enumerate(standings, 1)
            if s.ranks
        ]
    shown = [row for i, row in enumerate(rows) if i < SHOWN or row[1] in own]
    print_table(_title(suite, budget), header, shown)
    if len(rows) > len(shown):
        out.print(f"rows     {len(rows)}, of which the page shows all")


def print_row(suite: Suite, budget: str, lines: list[Line], row: str, flags: str) -> None:
    """The board with a row, the problems on which it is not done, by state, and the command of the
    page, with flags."""
    print_board(suite, budget, lines, [row])
    problems: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.row == row and line.state != "done":
            problems.setdefault(line.state, {})[line.problem] = None
    for state, names in problems.items():
        out.print(f"problems {STATE_WORDS.get(state, state)}: {', '.join(names)}")
    out.print(f"page     runner arena show {suite.name}{flags}")
