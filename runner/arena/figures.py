"""Figures of a suite's page: ranks, scores against costs, and for round robins the score of each
row against each opponent and the frontier of two scores.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.scores import final_lines
from runner.arena.standing.boards import Board
from runner.arena.standing.problem_results import average, list_costs, mean_results, trace
from runner.arena.standing.solved import performance_ratios
from runner.arena.standing.standings import Standing
from runner.arena.suite import Suite
from runner.report.figures.costs import mark_front
from runner.report.figures.picture import Picture
from runner.report.figures.ranks import MIN_BLOCKS, MIN_ROWS, rank
from runner.study.table_specs import PROBLEM_KEY, TableSpec

Ranked = Sequence[tuple[TableSpec, list[Standing]]]
BROAD = 8.0  # inches: a wider figure has the page's width


def list_figures(board: Board, rows: Sequence[str], ranked: Ranked) -> list[dict[str, Any]]:
    """All figures in the order of the page; performance profiles or the first ranks come first."""
    suite = board.suite
    pictures = [
        draw_profiles(board),
        *draw_boards(suite, board.lines, ranked, board.own),
        draw_frontier(suite, board.lines, rows),
        draw_pairs(suite, board.lines, rows),
    ]
    return [
        {
            "caption": picture.caption,
            "base64": base64.b64encode(picture.render(dpi=110)).decode(),
            "chart": picture.chart,
            "is_broad": picture.figure.get_figwidth() > BROAD,
        }
        for picture in pictures
        if picture
    ]


def draw_boards(
    suite: Suite, lines: pd.DataFrame, ranked: Ranked, own: Sequence[str] = ()
) -> Iterator[Picture | None]:
    """Figures of the ranks of each score, and of each score against each cost at each evaluation,
    with the Pareto front of final scores and the user's rows ``own`` in colour."""
    from components.figures.samples.cost import cost_figure

    kinds = list_costs(lines)
    scores = [str(table.metric) for table, _ in ranked]
    means = average(lines, [*scores, *(COST_PREFIX + kind for kind in kinds)])
    for (table, standings), metric in zip(ranked, scores, strict=True):
        yield _draw_ranks(table, standings)
        rows = [standing.row for standing in standings]
        for kind in kinds:
            points = trace(lines, means, metric, kind)
            if points.empty:  # no row has both
                continue
            # one line a row: bands of all rows would hide them
            curves = points.rename(columns={"row": "method"})
            curves = curves.assign(panel="", low=points["mean"], high=points["mean"])
            curves = curves.sort_values("method", key=lambda n: n.map(rows.index), kind="stable")
            direction = table.column_direction(PROBLEM_KEY)
            ends = curves.drop_duplicates("method", keep="last")
            finals = mark_front(ends, "cost", "mean", direction)
            label = kind.replace("_", " ")
            caption = (
                f"{table.title} against {label}: medians over problems; points: final scores, "
                "filled on the Pareto front"
            )
            figure = cost_figure(curves, finals, direction, label, metric, own)
            if (curves["mean"] > 0).all():  # one row far off would flatten all others
                for axes in figure.axes:
                    axes.set_yscale("log")
            yield Picture(figure, caption)


def _draw_ranks(table: TableSpec, standings: list[Standing]) -> Picture | None:
    """Diagram of the mean ranks of the placed rows, with critical differences if there are enough
    problems for a test; None if there are too few rows.
    """
    scores = pd.DataFrame({s.row: s.ranks for s in standings if s.ranks})
    n, k = scores.shape
    if k < MIN_ROWS:
        return None
    from components.figures.supervised.critical_difference import critical_difference_diagram

    caption = f"{table.title}: mean ranks over {n} problems, 1 is best"
    if n < MIN_BLOCKS:
        caption += f"; a test needs {MIN_BLOCKS} problems"
        means = {s.row: s.mean_rank for s in standings if s.ranks}
        figure = critical_difference_diagram(means, [])
    else:
        ranking = rank(scores, "nemenyi")
        caption += (
            f"; bars join rows without a significant difference at 5 % (Nemenyi, critical difference "
            f"{ranking.distance:.2f}); Friedman p {ranking.p_friedman:.2g}"
        )
        figure = critical_difference_diagram(ranking.ranks, ranking.groups(), ranking.distance)
    return Picture(figure, caption, is_interactive=False)


def pair_scores(
    suite: Suite, lines: pd.DataFrame, metric: str, rows: Sequence[str]
) -> dict[str, np.ndarray]:
    """Mean scores of the rows against each opponent, by problem [rows, opponents].

    Replicate r meets opponent r mod M.  A pair without a finite score is NaN; a problem without
    finite scores is omitted.
    """
    opponents = range(len(suite.opponents))
    final = final_lines(lines).reindex(columns=["problem", "row", "replicate", metric])
    final = final[np.isfinite(final[metric])]
    pairs = final.groupby(["problem", "row", final["replicate"] % len(opponents)])
    places = pd.MultiIndex.from_product([suite.problems, rows, opponents])
    means = pairs[metric].agg(np.mean).reindex(places).to_numpy()
    matrices = means.reshape(-1, len(rows), len(opponents))
    named = zip(suite.problems, matrices, strict=True)
    return {problem: each for problem, each in named if np.isfinite(each).any()}


def draw_pairs(suite: Suite, lines: pd.DataFrame, rows: Sequence[str]) -> Picture | None:
    """First score against each opponent; None if there are no scores."""
    table = suite.tables[0]
    matrices = pair_scores(suite, lines, str(table.metric), rows) if suite.opponents else {}
    if not matrices:
        return None
    from components.games.figures.pairs import pair_figure

    figure = pair_figure(matrices, rows, suite.opponents)
    caption = (
        f"{table.title} of each row (left) against each opponent (below), mean over replicates"
    )
    return Picture(figure, caption, is_interactive=False)


def draw_profiles(board: Board) -> Picture | None:
    """Performance profiles of the leading rows and the user's rows, with a panel for each
    tolerance; None if the costs of solving the problems are unknown.
    """
    suite = board.suite
    if suite.solve is None or not board.costs:
        return None
    from components.figures.samples.performance_profile import (
        MOST_NAMED,
        performance_profile_figure,
    )

    leaders = [each["row"] for each in board.solved]
    named = list(dict.fromkeys([*board.own, *leaders]))[:MOST_NAMED]
    profiles = {
        f"{suite.solve.metric} < {t:g}": {
            str(row): list(ratios) for row, ratios in performance_ratios(costs).iterrows()
        }
        for t, costs in board.costs.items()
    }
    caption = (
        f"Share of {len(suite.problems)} problems solved within a factor of the least cost of any row, for "
        f"{len(profiles)} tolerances; grey: the other {len(leaders) - len(named)} rows"
    )
    figure = performance_profile_figure(profiles, named)
    return Picture(figure, caption, is_interactive=False)


def draw_frontier(suite: Suite, lines: pd.DataFrame, rows: Sequence[str]) -> Picture | None:
    """The suite's two scores against each other, with a panel for each problem; None if there are
    no scores.
    """
    if suite.frontier is None:
        return None
    from components.figures.samples.trade_off import trade_off_figure

    axes = dict(suite.frontier)
    scores = pd.DataFrame({a: mean_results(lines, metric)["score"] for a, metric in axes.items()})
    places = pd.MultiIndex.from_product([suite.problems, rows], names=["panel", "method"])
    points = scores[np.isfinite(scores).all(axis=1)].swaplevel().reindex(places).dropna()
    if points.empty:
        return None
    table_of = {table.metric: table for table in suite.tables}
    x, y = (table_of[metric].column_direction(PROBLEM_KEY) for metric in axes.values())
    sign = 1.0 if x == "lower" else -1.0
    front = mark_front(points.assign(loss=sign * points["x"]).reset_index(), "loss", "y", y)
    caption = "{y} against {x}, means of replicates; filled: on the Pareto front of the problem"
    figure = trade_off_figure(front, axes["x"], axes["y"])
    return Picture(figure, caption.format(**axes), is_interactive=False)
