"""Figures of a suite's page: ranks, scores against costs, and of round robins each row against each
opponent and the frontier of two scores."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.arena.scores import Line, is_finite
from runner.arena.standing.problem_results import gather
from runner.arena.standing.solved import Costs, performance_ratios, place_rows
from runner.arena.standing.standings import Standing
from runner.arena.suite import Suite
from runner.report.figures.costs import pareto_front
from runner.report.figures.picture import Picture
from runner.report.figures.ranks import MIN_BLOCKS, MIN_ROWS, rank
from runner.study.table_specs import TableSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BROAD = 8.0  # inches: a wider figure has the page's width


def list_figures(
    suite: Suite,
    lines: Sequence[Line],
    rows: Sequence[str],
    boards: Sequence[tuple[TableSpec, list[Standing]]],
    own: Sequence[str],
    solved: Mapping[float, Costs],
) -> list[dict[str, Any]]:
    """Every figure as the page shows it, the profile or the first ranks in the lead; ``own``: rows of
    the user's, ``solved``: costs to solve by tolerance."""
    pictures = (
        *_to_stills(draw_profiles(suite, solved, own)),
        *draw_boards(suite, boards),
        *_to_stills(draw_frontier(suite, lines, rows), draw_pairs(suite, lines, rows)),
    )
    return [_view(picture) for picture in pictures]


def _to_stills(*drawn: tuple[Figure, str] | None) -> list[Picture]:
    return [Picture(*each, is_interactive=False) for each in drawn if each]


def draw_boards(
    suite: Suite, boards: Sequence[tuple[TableSpec, list[Standing]]]
) -> Iterator[Picture]:
    """Ranks of every score, and every score against every cost."""
    for table, standings in boards:
        ranks = _draw_ranks(table, standings)
        costs = (_draw_costs(suite, table, standings, kind) for kind in list_costs(standings))
        yield from filter(None, (ranks, *costs))


def list_costs(standings: Sequence[Standing]) -> list[str]:
    """Kinds of cost that some row has, in a fixed order."""
    kinds = {k for s in standings for r in s.results.values() for k in r.costs}
    return sorted(kinds)


def _view(picture: Picture) -> dict[str, Any]:
    return {
        "caption": picture.caption,
        "base64": base64.b64encode(picture.render(dpi=110)).decode(),
        "chart": picture.chart,
        "is_broad": picture.figure.get_figwidth() > BROAD,
    }


def _draw_ranks(table: TableSpec, standings: list[Standing]) -> Picture | None:
    """Diagram of the mean ranks of the rows that have a rank on every problem that the leader has,
    with critical differences if there are enough problems for a test; None: too few rows."""
    problems = list(standings[0].ranks) if standings else []
    complete = [s for s in standings if problems and all(p in s.ranks for p in problems)]
    if len(complete) < MIN_ROWS:
        return None
    import pandas as pd

    from components.figures.supervised.critical_difference import critical_difference_diagram

    caption = f"{table.title}: mean ranks over {len(problems)} problems, 1 is best"
    if len(problems) < MIN_BLOCKS:
        figure = critical_difference_diagram({s.row: s.mean_rank for s in complete}, [])
        few = f"{caption}; a test needs {MIN_BLOCKS} problems"
        return Picture(figure, few, is_interactive=False)
    scores = pd.DataFrame({s.row: [s.ranks[p] for p in problems] for s in complete})
    ranking = rank(scores, "nemenyi")
    caption += (
        f"; bars join what cannot be told apart at 5 % (Nemenyi, critical difference "
        f"{ranking.distance:.2f}); Friedman p {ranking.p_friedman:.2g}"
    )
    figure = critical_difference_diagram(ranking.ranks, ranking.groups(), ranking.distance)
    return Picture(figure, caption, is_interactive=False)


def _draw_costs(
    suite: Suite, table: TableSpec, standings: list[Standing], kind: str
) -> Picture | None:
    """Median score over problems against the median cost, by evaluation, and the Pareto front of
    final ones; None: no row has both."""
    import pandas as pd

    from components.figures.samples.cost import cost_figure

    points = [point for s in standings for point in _points(s, kind)]
    if not points:
        return None
    curves = pd.DataFrame(points)
    finals = curves.drop_duplicates("method", keep="last").copy()
    direction = suite.direction(table)
    finals["front"] = pareto_front(
        list(zip(finals["cost"], finals["mean"], strict=True)), direction
    )
    label = kind.replace("_", " ")
    caption = (
        f"{table.title} against {label}: medians over problems; points: final score, filled on the "
        "Pareto front"
    )
    figure = cost_figure(curves, finals, direction, label, str(table.metric))
    if (curves["mean"] > 0).all():  # one row far off would flatten all others
        for axes in figure.axes:
            axes.set_yscale("log")
    return Picture(figure, caption)


def _points(standing: Standing, kind: str) -> list[dict[str, Any]]:
    """Points of a curve: at each evaluation that every problem of the row has, and at its end."""
    results = [r for r in standing.results.values() if is_finite(r.score) and kind in r.costs]
    length = min((len(result.path) for result in results), default=0)
    columns = [[result.path[i] for result in results] for i in range(length)]
    columns.append([(result.costs, result.score) for result in results])
    points: list[dict[str, Any]] = []
    for column in columns:
        scores = [score for _, score in column]
        costs = [costs.get(kind, math.nan) for costs, _ in column]
        if scores and all(map(is_finite, [*scores, *costs])):
            score = float(np.median(scores))  # one line a row: bands of all rows would hide them
            names = {"panel": "", "method": standing.row, "step": len(points)}
            spread = {"mean": score, "low": score, "high": score}
            points.append(names | {"cost": float(np.median(costs))} | spread)
    return points


def pair_scores(
    suite: Suite, lines: Sequence[Line], metric: str, rows: Sequence[str]
) -> dict[str, np.ndarray]:
    """Mean scores of the rows against each opponent, by problem [rows, opponents].

    Replicate r meets opponent r mod M.  A pair without a finite score is NaN; a problem without
    any is left out.
    """
    M = len(suite.opponents)
    values: dict[tuple[str, str, int], list[float]] = {}
    for line in lines:
        score = line.values.get(metric)
        if line.is_final and score is not None and is_finite(score):
            pair = (line.problem, line.row, line.replicate % M)
            values.setdefault(pair, []).append(score)
    matrices: dict[str, np.ndarray] = {}
    for problem in suite.problems:
        means = [[values.get((problem, row, m)) for m in range(M)] for row in rows]
        matrix = np.array([[np.mean(v) if v else math.nan for v in each] for each in means])
        if np.isfinite(matrix).any():
            matrices[problem] = matrix
    return matrices


def draw_pairs(
    suite: Suite, lines: Sequence[Line], rows: Sequence[str]
) -> tuple[Figure, str] | None:
    """Figure and caption of the first score against each opponent; None: there is nothing."""
    if not suite.opponents:
        return None
    table = suite.tables[0]
    matrices = pair_scores(suite, lines, str(table.metric), rows)
    if not matrices:
        return None
    from components.games.figures.pairs import pair_figure

    caption = f"{table.title} of each row (left) against each opponent (below), mean of replicates"
    return pair_figure(matrices, rows, suite.opponents), caption


def draw_profiles(
    suite: Suite, costs: Mapping[float, Costs], own: Sequence[str]
) -> tuple[Figure, str] | None:
    """Figure and caption of the performance profiles of the leading rows and the user's, a panel for
    each tolerance; None: there are no costs to solve."""
    if suite.solve is None or not costs:
        return None
    from components.figures.samples.performance_profile import (
        MOST_NAMED,
        performance_profile_figure,
    )

    leaders = [place.row for place in place_rows(next(iter(costs.values())))]
    named = list(dict.fromkeys([*own, *leaders]))[:MOST_NAMED]
    profiles = {
        f"{suite.solve.metric} < {t:g}": {
            row: list(ratios.values()) for row, ratios in performance_ratios(each).items()
        }
        for t, each in costs.items()
    }
    caption = (
        f"Share of {len(suite.problems)} problems solved within a factor of the least cost of any row, for "
        f"{len(profiles)} tolerances; grey: the other {len(leaders) - len(named)} rows"
    )
    return performance_profile_figure(profiles, named), caption


def draw_frontier(
    suite: Suite, lines: Sequence[Line], rows: Sequence[str]
) -> tuple[Figure, str] | None:
    """Figure and caption of the suite's two scores against each other, a panel for each problem;
    None: there is nothing."""
    if suite.frontier is None:
        return None
    import pandas as pd

    from components.figures.samples.trade_off import trade_off_figure

    x, y = suite.frontier.x, suite.frontier.y
    by_x, by_y = gather(lines, x), gather(lines, y)
    directions = {str(table.metric): suite.direction(table) for table in suite.tables}
    points = []
    for problem in suite.problems:
        scores = {}
        for row in rows:
            found = [by.get(row, {}).get(problem) for by in (by_x, by_y)]
            pair = [result.score for result in found if result and is_finite(result.score)]
            if len(pair) == 2:
                scores[row] = (pair[0], pair[1])
        sign = 1.0 if directions[x] == "lower" else -1.0
        front = pareto_front([(sign * a, b) for a, b in scores.values()], directions[y])
        for (row, (a, b)), on_front in zip(scores.items(), front, strict=True):
            points.append({"panel": problem, "method": row, "x": a, "y": b, "front": on_front})
    if not points:
        return None
    caption = f"{y} against {x}, means of replicates; filled: on the Pareto front of the problem"
    return trade_off_figure(pd.DataFrame(points), x, y), caption
