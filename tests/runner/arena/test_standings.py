"""Standings of a suite's rows: ranks, ties, failures, differences, and the page that shows them."""

import html
import math
import re

import pytest
from support.runs.arena_suites import TOY, make_line, make_lines, toy

from runner.arena import figures, page, rows
from runner.arena.standings import median_interval, rank_rows
from runner.arena.tune import describe_tie

PROBLEMS = list("pqrstu")


def rank(lines, direction="lower", reference=None):
    return rank_rows(lines, "error_mean", direction, reference)


def test_places_follow_mean_ranks():
    lines = make_lines(a=[1, 1, 1, 1, 1, 9], b=[2] * 6, c=[3] * 6)
    standings = rank(lines)
    assert [s.row for s in standings] == ["a", "b", "c"]
    assert (standings[0].mean_rank, standings[0].typical) == pytest.approx((8 / 6, 1))
    assert [s.row for s in rank(lines, "higher")] == ["c", "b", "a"]


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_equal_mean_ranks_are_ordered_by_the_median(direction):
    """Three rows on three problems, each first, second and last once; names run against it."""
    sign = 1 if direction == "lower" else -1
    scores = {"a": (1, 5, 9), "b": (2, 6, 4), "c": (3, 1, 8), "d": (0, 0, 0)}
    signed = {row: [sign * score for score in each] for row, each in scores.items()}
    standings = rank(make_lines(problems="xyz", **signed), direction)
    assert [s.row for s in standings] == ["d", "c", "b", "a"]
    assert [s.mean_rank for s in standings] == pytest.approx([1, 3, 3, 3])
    assert [s.tied for s in standings] == [(), ("b", "a"), ("c", "a"), ("c", "b")]
    assert describe_tie(standings[1], "predictive_ll") == (
        "tie      mean rank 3.0 is that of 2 other settings too: the best median predictive_ll "
        f"decides, {3 * sign}"
    )


def test_of_equal_mean_ranks_a_row_without_a_median_is_last():
    """A row that failed on the one problem that it has, next to one with a score elsewhere."""
    lines = [make_line(row, "x", None, "failed") for row in "ab"]
    lines += make_lines(problems="xy", c=[1.0, 1.0])
    lines += make_lines(problems="y", b=[2.0], d=[2.0])
    ranks = [(s.row, s.mean_rank) for s in rank(lines)]
    assert ranks == [("c", 1), ("b", 2.5), ("d", 2.5), ("a", 2.5)]


def test_failures_rank_last_and_what_does_not_apply_is_left_out():
    lines = [
        *[make_line("a", p, 1.0) for p in PROBLEMS],
        *[make_line("b", p, None, "failed") for p in PROBLEMS[:2]],
        *[make_line("b", p, None, "not applicable") for p in PROBLEMS[2:]],
        *[make_line("c", p, 0.5, "over budget") for p in PROBLEMS],
    ]
    a, b, c = sorted(rank(lines), key=lambda s: s.row)
    assert b.ranks == dict.fromkeys(PROBLEMS[:2], 2.5)
    assert (a.mean_rank, c.mean_rank) == pytest.approx((1, (2.5 * 2 + 2 * 4) / 6))
    assert (b.count("failed"), b.count("not applicable"), c.count("over budget")) == (2, 4, 6)


def test_a_problem_without_a_score_ranks_nobody():
    """A table need not have its score on every problem: a failure there is no last place."""
    lines = make_lines(problems="x", a=[1.0], b=[2.0])
    lines += [make_line("a", "y", None, "failed"), make_line("b", "y", None)]
    a, b = rank(lines)
    assert (a.row, a.ranks, a.n_problems, b.ranks) == ("a", {"x": 1.0}, 1, {"x": 2.0})


def test_rows_that_fail_their_checks_are_below():
    lines = [make_line("a", p, 1.0, "doubted") for p in PROBLEMS] + make_lines(b=[2.0] * 6)
    assert [(s.row, s.is_doubted) for s in rank(lines)] == [("b", False), ("a", True)]


def test_differences_are_tested_over_problems_and_corrected():
    lines = make_lines(a=[1, 2, 3, 4, 5, 6], b=[2, 3.1, 4, 5, 6, 7.2], c=[2, 1, 4, 3, 6, 5.5])
    against = {s.row: s.against for s in rank(lines, reference="a")}
    assert against["a"] is None
    b = against["b"]
    assert (b.p, b.p_holm, b.difference) == pytest.approx((2 / 2**6, 4 / 2**6, 6.3 / 6))


def test_the_leaders_score_at_a_tenth_of_its_cost():
    lines = [
        make_line("a", "x", 1.0, cost=100),
        make_line("b", "x", 2.0, cost=90),
        make_line("b", "x", 0.9, step=1, cost=10),
        make_line("c", "x", 3.0, cost=100),
        make_line("c", "x", 0.9, step=1, cost=11),
    ]
    assert {s.row: s.early for s in rank(lines)} == {"a": 0, "b": 1, "c": 0}


def test_interval_of_a_median():
    low, high = median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert 1 <= low < 4 < high <= 7
    assert math.isnan(median_interval([1.0, 2.0])[0])


# ---- the page
@pytest.mark.slow  # figures
def test_figures_of_a_page():
    costs = {"cost/gradients": 100.0}
    lines = [
        make_line(row, p, s, **costs)
        for row, each in {"a": [1, 1, 1, 1, 1, 9], "b": [2] * 6, "c": [3] * 6}.items()
        for p, s in zip(PROBLEMS, each, strict=True)
    ]
    suite = toy(problems={p: ["dataset=gaussian"] for p in PROBLEMS}, tables=TOY["tables"][:1])
    drawn = list(figures.draw_boards(suite, [(suite.tables[0], rank(lines))]))
    names = [picture.caption.split(":")[0] for picture in drawn]
    assert names == ["Error", "Error against gradients"]
    assert "mean ranks over 6 problems" in drawn[0].caption


def test_page_shows_own_rows_next_to_kept_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    suite = toy()
    own = rows.make_row(["inference=walk", "plugins=[walk]"], "mine")
    lines = [
        make_line(row, problem, score, ess=10.0)
        for row, score in (("SGLD", 1.0), ("mine", 0.5))
        for problem in suite.problems
    ]
    lines += [
        make_line("walk", "normal", None, "failed"),
        make_line("walk", "mixture", 1.0, "doubted", ess=3.0),
    ]
    text = page.write(suite, "small", lines, [own], tmp_path / "page.html").read_text()
    assert "http:" not in text.split("<main>")[1].split("</main>")[0]
    (kind, first), *_ = re.findall(r'<tr class="(\w*)">(.*?)</tr>', text, re.S)
    assert kind == "own"
    assert ">mine<" in first
    cell = html.unescape(re.search(r'<template id="cell-0">(.*?)</template>', text, re.S)[1])
    assert "<h3>mine, normal</h3>" in cell
    assert "runner arena run toy inference=walk 'plugins=[walk]' --as 'mine'" in cell
    assert "failed" in text
