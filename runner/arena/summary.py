"""What the terminal shows of a suite: the plan of a row, its places, and the first rows of the board."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.arena.listing import time_of_row
from runner.arena.scores import Line, read_kept_lines
from runner.arena.standing.boards import costs_by_tolerance, solved_rows
from runner.arena.standing.solved import Costs, place_rows
from runner.arena.standing.standings import rank_rows
from runner.arena.suite import Suite
from runner.study.table_specs import Row
from runner.terminal.printer import number, out
from runner.terminal.tables import print_table

SHOWN = 10  # rows of the board on the terminal, apart from the user's
SOLVED = ("tolerance", "place", "solved", "cost by the leader's", "leader")


def print_plan(suite: Suite, budget: str, row: Row, jobs: int) -> None:
    """What is about to run, before the lengths of its runs are measured."""
    n = suite.replicates or 1
    out.print(
        f"plan     {row.name} on {len(suite.problems)} problems of {suite.name}"
        f"{f', budget {budget}' if budget else ''}, {n} replicate{'s' if n > 1 else ''} each, {jobs} at once"
    )
    if time := time_of_row(suite, [k for k in read_kept_lines(suite) if k.budget == budget]):
        out.print(f"time     {time} for a typical kept row, on all cores of this machine")


def print_places(suite: Suite, budget: str, row: Row, lines: list[Line]) -> None:
    """The row's place by problems solved, or on each score."""
    title = f"{row.name} in {suite.name}{f', budget {budget}' if budget else ''}"
    boards = costs_by_tolerance(suite, lines)
    if boards:
        print_table(title, SOLVED, [_describe_place(t, c, row.name) for t, c in boards.items()])
    rows = []
    for table in suite.ranked if not boards else ():
        metric = str(table.metric)
        standings = rank_rows(lines, metric, suite.direction(table), row.name, suite.gold)
        placed = {s.row: (place, s) for place, s in enumerate(standings, 1) if s.ranks}
        if row.name not in placed:
            rows.append([metric, "–", "", "", ""])
            continue
        place, mine = placed[row.name]
        places = f"{place}{'=' if mine.tied else ''} of {len(placed)}"
        numbers = [f"{mine.mean_rank:.1f}", number(mine.typical)]
        rows.append([metric, places, *numbers, standings[0].row])
    if rows:
        print_table(title, ("score", "place", "mean rank", "median", "leader"), rows)
    states = _describe_states(lines, row.name)
    if states:
        out.print(f"problems {states}")


def _describe_place(tolerance: float, costs: Costs, row: str) -> list[str]:
    """Place of a row at a tolerance, the problems that it solves, and its cost by the leader's."""
    places = place_rows(costs)
    mine = next(place for place in places if place.row == row)
    problems = len(costs[places[0].row])
    return [
        number(tolerance),
        f"{mine.place} of {len(places)}",
        f"{len(mine.solved)} of {problems}",
        number(mine.ratio) if math.isfinite(mine.ratio) else "–",
        places[0].row,
    ]


def _describe_states(lines: list[Line], row: str) -> str:
    """Problems on which a row is not done, by state."""
    problems: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.row == row and line.state != "done":
            problems.setdefault(line.state, {})[line.problem] = None
    words = {"doubted": "checks failed (†)", "short": "too few steps (¶)"}
    return "; ".join(f"{words.get(s, s)}: {', '.join(names)}" for s, names in problems.items())


def print_board(suite: Suite, budget: str, lines: list[Line], own: Sequence[str]) -> None:
    """The first rows of the board and the user's: problems solved and costs, or mean ranks."""
    title = f"{suite.name}{f', budget {budget}' if budget else ''}"
    by_tolerance = costs_by_tolerance(suite, lines)
    header: tuple[str, ...]
    if by_tolerance:
        board = solved_rows(by_tolerance, lines)
        header = ("place", "row", *(f"solved, {number(t)}" for t in by_tolerance), "gradients")
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
        standings = rank_rows(lines, str(table.metric), suite.direction(table), gold=suite.gold)
        header = ("place", "row", "mean rank", f"median {table.metric}")
        rows = [
            [str(i), s.row, f"{s.mean_rank:.1f}", number(s.typical)]
            for i, s in enumerate(standings, 1)
            if s.ranks
        ]
    shown = [row for i, row in enumerate(rows) if i < SHOWN or row[1] in own]
    print_table(title, header, shown)
    if len(rows) > len(shown):
        out.print(f"rows     {len(rows)}, of which the page shows all")
