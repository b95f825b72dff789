"""Standings by problems solved and by the cost to solve, with planted rows."""

import math

import numpy as np
import pandas as pd
import pytest
from support.runs.arena_suites import make_line, toy

from runner.arena import rows
from runner.arena.scores import SCORED, read_kept_lines, to_frame
from runner.arena.standing.boards import Board
from runner.arena.standing.solved import (
    costs_of_replicates,
    costs_to_solve,
    count_evaluations,
    performance_ratios,
    place_rows,
)
from runner.arena.stored import stored_file
from runner.arena.suite import load_suite

PROBLEMS = [f"p{i}" for i in range(17)]
FEWER = {"problems": PROBLEMS[8:]}
REPLICATES = 5
TOLERANCE = 0.1
COUNTED = ("gradients", "densities")


def write_lines(row, problem, errors, replicate=0, state="done", unit=1.0):
    """Lines of one replicate: error i at i + 1 units of cost, the last one final."""
    steps = [*range(1, len(errors)), -1]
    costs = [{f"cost/{kind}": unit * (i + 1) for kind in COUNTED} for i in range(len(steps))]
    return [
        make_line(row, problem, None, state, step, replicate=replicate, error_mean=error, **cost)
        for step, error, cost in zip(steps, errors, costs, strict=True)
    ]


def write_row(
    row,
    unit=1.0,
    problems=PROBLEMS,
    replicates=REPLICATES,
    errors=(1.0, 0.5, 0.05, 0.02),
    absent=None,
    **keys,
):
    """Lines of a row; ``absent``: state of the other replicates, which have no score."""
    lines = [
        line
        for problem in problems
        for r in range(replicates)
        for line in write_lines(row, problem, errors, r, unit=unit, **keys)
    ]
    return lines + [
        make_line(row, p, None, absent, replicate=r)
        for p in PROBLEMS
        for r in range(REPLICATES)
        if absent
    ]


def place(lines):
    costs = costs_to_solve(to_frame(lines), "error_mean", TOLERANCE, REPLICATES)
    return {p.Index: p for p in place_rows(costs).itertuples()}


@pytest.mark.parametrize(
    ("errors", "cost"),
    [
        ([1.0, 0.05, 0.01], 2.0),
        ([0.05, 1.0, 0.01], 3.0),  # it must stay below
        ([0.05, math.nan, 0.01], 3.0),
        ([0.05, 0.01, 0.2], math.inf),
        ([0.05, 0.01, math.nan], math.inf),
        ([0.1, 0.1, 0.1], math.inf),  # equal to the tolerance is not below it
    ],
)
def test_replicate_solves_once_its_error_stays_below(errors, cost):
    lines = to_frame(write_lines("a", "p", errors))
    assert costs_of_replicates(lines, "error_mean", TOLERANCE).item() == cost


def test_rows_without_any_score_solve_nothing():
    costs = costs_to_solve(to_frame([make_line("a", "p", None, "failed")]), "error_mean", 0.1, 1)
    assert costs.to_numpy().tolist() == [[math.inf]]


def test_density_costs_a_third_of_a_gradient():
    counts = {"cost/gradients": [6.0, None, 3.0, None], "cost/densities": [6.0, 6.0, 9.0, None]}
    costs = count_evaluations(pd.DataFrame(counts)).tolist()
    assert costs == pytest.approx([6.0, 2.0, 5.0, math.inf])


def test_cost_is_a_median_with_infinite_missing_values():
    lines = [
        line
        for r, unit in enumerate([1.0, 2.0, 30.0])
        for line in write_lines("a", "p", [0.0], r, unit=unit)
    ]
    for replicates, cost in ((3, 2.0), (5, 30.0), (7, math.inf)):
        frame = costs_to_solve(to_frame(lines), "error_mean", TOLERANCE, replicates)
        assert frame.loc["a", "p"] == cost


# keys of ``write_row``, and the state of a problem in ranks
FLAWS = {
    "fails on nine": ({"problems": PROBLEMS[9:], "absent": "failed"}, "failed"),
    "not applicable on eight": (FEWER | {"absent": "not applicable"}, "not applicable"),
    "no score on eight": (FEWER | {"absent": "done"}, "no score"),
    "eight problems are missing": (FEWER, "not run"),
    "other replicates fail": ({"replicates": 1, "absent": "failed"}, "no score"),
    "one replicate only": ({"replicates": 1}, "incomplete"),
    "wrong on one moment": ({"errors": [1.0, 0.5, 0.5, 0.5]}, "done"),
    "ends with NaN": ({"errors": [1.0, 0.05, 0.02, math.nan]}, "no score"),
    "never finite": ({"errors": [math.inf] * 4}, "diverged"),
    "minus infinity": ({"errors": [-math.inf] * 4}, "no score"),
    "negative errors": ({"errors": [-1.0, -0.5, -0.05, -0.02]}, "no score"),
    "over budget": ({"state": "over budget"}, "over budget"),
}
# flaws that do not change the place in ranks, and in neither: marks change no order, other lines
# do not count
LEVEL_IN_RANKS = {
    "three budgets": {"unit": 3.0},
    "costs nothing": {"unit": 0.0},
    "cost not counted": {"unit": math.nan},
    "evaluated at the end only": {"errors": [0.02], "unit": 4.0},
}
LEVEL = {
    "doubted everywhere": {"state": "doubted"},
    "two more replicates": {"replicates": REPLICATES + 2},
    "problems of its own": {"problems": [*PROBLEMS, "easy", "easier"]},
}
MEDIAN = "one replicate is missing"  # the cost is a median
PLANTED = FLAWS | {MEDIAN: ({"replicates": REPLICATES - 1}, "incomplete")}
PLANTED |= {flaw: (keys, "") for flaw, keys in (LEVEL | LEVEL_IN_RANKS).items()}


@pytest.mark.parametrize("flaw", PLANTED)
def test_flawed_copy_never_ranks_above_the_honest_row(flaw, monkeypatch):
    """With solved problems and with ranks; duplicate lines count once."""
    keys, state = PLANTED[flaw]
    slow = write_row("slow", unit=3.0, errors=(1.0, 0.5, 0.05, 0.03))
    lines = to_frame(write_row("honest") + 2 * write_row("a copy", **keys) + slow)
    suite = toy(
        problems={p: ["dataset=gaussian"] for p in PROBLEMS},
        replicates=REPLICATES,
        solve={"metric": "error_mean", "tolerances": [TOLERANCE]},
    )
    monkeypatch.setattr(rows, "read_kept_lines", lambda _: lines)
    board = Board(suite, "small", rows.read_lines(suite, "small", []))
    solved = {each["row"]: each for each in board.solved}
    assert solved["honest"]["place"] == 1
    assert (solved["a copy"]["place"] == 1) == (flaw in LEVEL or flaw == MEDIAN)
    assert solved["slow"]["ratio"] == pytest.approx(3.0)
    ranks = {each.row: each for each in board.rank(suite.tables[0])}
    assert ranks["honest"].place == ("1" if state else "1=")
    assert not state or ranks["a copy"].states[state]


def test_rows_are_ordered_by_problems_solved_then_by_cost():
    cheap = write_row("cheap", unit=0.1, problems=PROBLEMS[:10])
    places = place(write_row("b", unit=2.0) + write_row("a") + cheap)
    assert [*places] == ["a", "b", "cheap"]
    assert places["cheap"].ratio == pytest.approx(0.1)
    assert places["cheap"].solved == 10


def test_ratios_are_costs_over_the_least_of_any_row():
    costs = pd.DataFrame([[1.0, 4.0, math.inf], [3.0, 2.0, math.inf]])
    ratios = [[1.0, 2.0, math.inf], [3.0, 1.0, math.inf]]
    assert performance_ratios(costs).to_numpy().tolist() == ratios


def test_kept_board_equals_a_plain_recomputation():
    """Costs, counts and ratios of the kept scores, by loops over the lines of the file."""
    suite = load_suite("posteriors_small")
    tolerance = suite.solve.tolerances[0]
    file = pd.read_csv(stored_file(suite.name), low_memory=False)
    file = file[file["budget"] == "medium"].replace({"step": {-1: math.inf}}).sort_values("step")
    costs = {}
    for (row, problem, _), run in file.groupby(["row", "problem", "replicate"]):
        is_below = (run[suite.solve.metric] < tolerance) & run["state"].isin(SCORED)
        above = np.flatnonzero(~is_below)
        first = above[-1] + 1 if len(above) else 0  # lines that stay below
        spent = run[["cost/gradients", "cost/densities"]].fillna(0.0).to_numpy()
        spent = spent[:, 0] + np.maximum(spent[:, 1] - spent[:, 0], 0) / 3
        each = costs.setdefault(row, {}).setdefault(problem, [math.inf] * suite.replicates)
        each.remove(math.inf)
        each.append(spent[first] if first < len(spent) else math.inf)
    medians = {row: {p: np.median(c) for p, c in each.items()} for row, each in costs.items()}
    finite = {r: {p: c for p, c in each.items() if c < math.inf} for r, each in medians.items()}
    lines = read_kept_lines(suite).query("budget == 'medium'")
    board = Board(suite, "medium", lines).solved
    assert [each["solved"] for each in board] == [len(finite[each["row"]]) for each in board]
    leader = finite[next(each["row"] for each in board if each["ratio"] == 1)]
    for each in board:
        logs = [math.log(c / leader[p]) for p, c in finite[each["row"]].items() if p in leader]
        ratio = math.exp(np.mean(logs)) if logs else math.inf
        assert each["ratio"] == pytest.approx(ratio, rel=1e-9)
    order = [(-each["solved"], each["ratio"]) for each in board]
    assert order == sorted(order)
