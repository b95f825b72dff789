"""Standings by problems solved and by the cost to solve, with planted rows."""

import math

import pytest

from runner.arena.scores import Line
from runner.arena.standing.solved import (
    cost_of_replicate,
    costs_to_solve,
    count_evaluations,
    performance_ratios,
    place_rows,
)

PROBLEMS = [f"p{i}" for i in range(17)]
REPLICATES = 5
TOLERANCE = 0.1


def write_lines(row, problem, errors, replicate=0, state="done", unit=1.0):
    """Lines of one replicate: error i at i + 1 units of cost, the last one final."""
    steps = [*range(1, len(errors)), -1]
    return [
        Line(
            "medium", row, problem, 0, replicate, step, state,
            values={"cost/gradients": unit * (i + 1), "cost/densities": unit * (i + 1), "error": error},
        )
        for i, (step, error) in enumerate(zip(steps, errors, strict=True))
    ]  # fmt: skip


def write_row(row, unit=1.0, problems=PROBLEMS, replicates=REPLICATES, **keys):
    errors = [1.0, 0.5, 0.05, 0.02]
    return [
        line
        for problem in problems
        for r in range(replicates)
        for line in write_lines(row, problem, errors, r, unit=unit, **keys)
    ]


def place(lines):
    return {p.row: p for p in place_rows(costs_to_solve(lines, "error", TOLERANCE, REPLICATES))}


@pytest.mark.parametrize(
    ("errors", "cost"),
    [
        ([1.0, 0.05, 0.01], 2.0),
        ([0.05, 1.0, 0.01], 3.0),  # it must stay below
        ([0.05, math.nan, 0.01], 3.0),
        ([0.05, 0.01, 0.2], math.inf),
        ([0.05, 0.01, math.nan], math.inf),
        ([0.1, 0.1, 0.1], math.inf),  # at the tolerance is not below it
    ],
)
def test_replicate_solves_once_its_error_stays_below(errors, cost):
    assert cost_of_replicate(write_lines("a", "p", errors), "error", TOLERANCE) == cost


def test_density_costs_a_third_of_a_gradient():
    assert count_evaluations({"cost/gradients": 6.0, "cost/densities": 6.0}) == 6.0
    assert count_evaluations({"cost/densities": 6.0}) == pytest.approx(2.0)
    assert count_evaluations({"cost/gradients": 3.0, "cost/densities": 9.0}) == pytest.approx(5.0)
    assert math.isnan(count_evaluations({}))


def test_cost_is_the_median_over_replicates_and_missing_ones_are_infinite():
    lines = [
        line
        for r, unit in enumerate([1.0, 2.0, 30.0])
        for line in write_lines("a", "p", [0.0], r, unit=unit)
    ]
    assert costs_to_solve(lines, "error", TOLERANCE, 3)["a"]["p"] == 2.0
    assert costs_to_solve(lines, "error", TOLERANCE, 5)["a"]["p"] == 30.0
    assert costs_to_solve(lines, "error", TOLERANCE, 7)["a"]["p"] == math.inf


def plant(flaw):
    """A copy of an honest row with a flaw."""
    if flaw == "fails on nine":
        fine = write_row("planted", problems=PROBLEMS[9:])
        return fine + [Line("medium", "planted", p, 0, 0, -1, "failed") for p in PROBLEMS[:9]]
    if flaw == "no score on eight":
        fine = write_row("planted", problems=PROBLEMS[8:])
        empty = {"cost/gradients": 4.0}
        return fine + [
            Line("medium", "planted", p, 0, r, -1, "done", values=empty)
            for p in PROBLEMS[:8]
            for r in range(REPLICATES)
        ]
    if flaw == "not applicable on eight":
        fine = write_row("planted", problems=PROBLEMS[8:])
        return fine + [
            Line("medium", "planted", p, 0, 0, -1, "not applicable") for p in PROBLEMS[:8]
        ]
    if flaw == "over budget":
        return write_row("planted", state="over budget")
    if flaw == "doubted everywhere":
        return write_row("planted", state="doubted")
    return write_row("planted", replicates=REPLICATES - 1)  # one of five replicates is missing


@pytest.mark.parametrize(
    "flaw",
    [
        "fails on nine",
        "no score on eight",
        "not applicable on eight",
        "over budget",
        "doubted everywhere",
        "one replicate is missing",
    ],
)
def test_flawed_copy_never_ranks_above_the_honest_row(flaw):
    places = place(write_row("honest") + plant(flaw) + write_row("slow", unit=3.0))
    assert places["honest"].place == 1
    assert places["planted"].place >= 1
    is_level = flaw in ("doubted everywhere", "one replicate is missing")
    assert (places["planted"].place == 1) == is_level  # a mark moves no row
    assert places["slow"].ratio == pytest.approx(3.0)


def test_rows_are_ordered_by_problems_solved_then_by_cost():
    cheap = write_row("cheap", unit=0.1, problems=PROBLEMS[:10])
    places = place(write_row("b", unit=2.0) + write_row("a") + cheap)
    assert [p.row for p in sorted(places.values(), key=lambda p: p.place)] == ["a", "b", "cheap"]
    assert places["cheap"].ratio == pytest.approx(0.1)
    assert len(places["cheap"].solved) == 10


def test_ratios_are_costs_over_the_least_of_any_row():
    costs = {"a": {"p": 1.0, "q": 4.0, "r": math.inf}, "b": {"p": 3.0, "q": 2.0, "r": math.inf}}
    ratios = performance_ratios(costs)
    assert ratios["a"] == {"p": 1.0, "q": 2.0, "r": math.inf}
    assert ratios["b"] == {"p": 3.0, "q": 1.0, "r": math.inf}
