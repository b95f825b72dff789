"""Standings of a suite's rows: ranks, ties, failures, differences, and their page."""

import html
import math
import re
from dataclasses import replace

import pytest
from support.runs.arena_suites import TOY, make_line, make_lines, toy

from runner.arena import figures, page, rows
from runner.arena.scores import to_frame
from runner.arena.standing.boards import Board
from runner.arena.standing.standings import median_interval, rank_rows
from runner.arena.summary import print_board
from runner.arena.tune import describe_tie

PROBLEMS = list("pqrstu")
LINES = make_lines(a=[1, 1, 1, 1, 1, 9], b=[2] * 6, c=[3] * 6)


def rank(lines, direction="lower", reference=None):
    return rank_rows(to_frame(lines), "error_mean", direction, reference)


def test_places_follow_mean_ranks():
    standings = rank(LINES)
    assert [s.row for s in standings] == ["a", "b", "c"]
    assert (standings[0].mean_rank, standings[0].typical) == pytest.approx((8 / 6, 1))
    assert [s.row for s in rank(LINES, "higher")] == ["c", "b", "a"]


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_equal_mean_ranks_are_ordered_by_the_median(direction):
    """Three rows on three problems, each first, second and last once; names are in reverse
    order."""
    sign, most = (1, 0) if direction == "lower" else (-1, 9)
    scores = {"a": (1, 5, 9), "b": (2, 6, 4), "c": (3, 1, 8), "d": (0, 0, 0)}
    signed = {row: [most + sign * score for score in each] for row, each in scores.items()}
    standings = rank(make_lines(problems="xyz", **signed), direction)
    assert [s.row for s in standings] == ["d", "c", "b", "a"]
    assert [s.mean_rank for s in standings] == pytest.approx([1, 3, 3, 3])
    assert [s.tied for s in standings] == [(), ("b", "a"), ("c", "a"), ("c", "b")]
    assert describe_tie(standings[1], "predictive_ll") == (
        "mean rank 3.0 is shared by 2 other settings: the best median predictive_ll "
        f"decides, {most + 3 * sign}"
    )


def test_problem_without_any_score_ranks_nobody():
    """A table may lack its score on a problem, where a failure does not rank last."""
    lines = make_lines(problems="x", a=[1.0], b=[2.0])
    lines += [make_line("a", "y", None, "failed"), make_line("b", "y", None)]
    a, b = rank(lines)
    assert (a.row, a.ranks, b.ranks) == ("a", {"x": 1.0}, {"x": 2.0})


def test_ranks_are_over_the_problems_that_apply_to_all():
    lines = make_lines(a=[1.0] * 6, b=[2.0] * 6)
    lines += [make_line("c", p, None, "not applicable") for p in PROBLEMS[:2]]
    lines += [make_line("c", p, 1.5) for p in PROBLEMS[2:]]
    lines += [make_line("d", p, None, "not applicable") for p in PROBLEMS[:3]]
    lines += [make_line("d", p, 0.5) for p in PROBLEMS[3:]]
    standings = {s.row: s for s in rank(lines)}
    assert [*standings] == ["a", "c", "b", "d"]
    assert [*standings["a"].ranks] == PROBLEMS[2:]
    assert standings["d"].ranks == {}  # no place if more than a third of the problems do not apply


def test_tied_rows_share_their_place():
    """Neither a name, nor a mark, nor an inapplicable problem places a copy ahead of its original."""
    lines = make_lines(b=[1.0, 1.0, 1.0, 1.2, 1.2, 1.9], c=[2.0] * 6)
    copy = [line | {"row": "a copy", "state": "doubted"} for line in lines[:5]]
    copy += [make_line("a copy", PROBLEMS[5], None, "not applicable")]
    standings = rank(lines + copy)
    assert [(s.row, s.place) for s in standings] == [("a copy", "1="), ("b", "1="), ("c", "3")]


def test_absurd_score_is_a_divergence():
    lines = make_lines(a=[1.0] * 6, b=[2.0] * 6, c=[1e21, math.inf, 1.0, 1.0, 1.0, 1.0])
    c = next(s for s in rank(lines) if s.row == "c")
    assert c.states["diverged"] == 2
    assert c.typical == 1.0


def test_gold_row_is_a_reference_and_has_no_place():
    lines = make_lines(a=[1.0] * 6, gold=[0.0] * 6)
    standings = rank_rows(to_frame(lines), "error_mean", "lower", gold="gold")
    assert [(s.row, bool(s.ranks)) for s in standings] == [("a", True), ("gold", False)]
    assert standings[0].mean_rank == 1.0


def test_differences_are_tested_over_problems_and_corrected():
    lines = make_lines(a=[1, 2, 3, 4, 5, 6], b=[2, 3.1, 4, 5, 6, 7.2], c=[2, 1, 4, 3, 6, 5.5])
    against = {s.row: s.against for s in rank(lines, reference="a")}
    assert against["a"] is None
    b = against["b"]
    assert (b.p, b.p_holm, b.difference) == pytest.approx((2 / 2**6, 4 / 2**6, 1.0))


def test_interval_of_a_median_is_exact():
    low, high = median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert 1 <= low < 4 < high <= 7
    assert math.isnan(median_interval([1.0, 2.0])[0])


# the page
@pytest.mark.slow  # figures
def test_page_has_its_figures():
    suite = toy(problems={p: ["dataset=gaussian"] for p in PROBLEMS}, tables=TOY["tables"][:1])
    drawn = list(figures.draw_boards(suite, to_frame(LINES), [(suite.tables[0], rank(LINES))]))
    names = [picture.caption.split(":")[0] for picture in drawn]
    assert names == ["Error", "Error against gradients"]
    assert "mean ranks over 6 problems" in drawn[0].caption


def test_page_shows_own_rows_next_to_kept_ones(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    suite = toy()
    own_row = rows.make_row(["inference=walk", "plugins=[walk]"], "mine")
    lines = [
        make_line(row, problem, score, ess=10.0)
        for row, score in (("SGLD", 1.0), ("mine", 0.5))
        for problem in suite.problems
    ]
    lines += [
        make_line("walk", "normal", None, "failed"),
        make_line("walk", "mixture", 1.0, "doubted", ess=3.0, checks="bias; rhat ¶"),
    ]
    board = Board(suite, "small", to_frame(lines), [own_row])
    text = page.write(board, tmp_path / "page.html").read_text()
    print_board(replace(board, user_rows=[rows.make_row(["inference=walk"], "walk")]))
    assert "checks   of walk, failed: bias; rhat ¶" in capsys.readouterr().out
    assert "http:" not in text.split("<main>")[1].split("</main>")[0]
    (kind, first), *_ = re.findall(r'<tr class="(\w*)">(.*?)</tr>', text, re.S)
    assert kind == "own"
    assert ">mine<" in first
    cell = html.unescape(re.search(r'<template id="cell-0">(.*?)</template>', text, re.S)[1])
    assert "<h3>mine, normal</h3>" in cell
    assert "runner arena run toy inference=walk 'plugins=[walk]' --as 'mine'" in cell
    assert "code: abc" in cell
    assert text.count('title="failed: bias; rhat ¶"') == 2 * len(suite.tables)  # board and cell
