"""Figures of a score against its cost: steps, seconds of training, or a recorded cost
(``cost/gradients``, …).

Curves are means over replicates at each evaluation, bands their central 90 %.  A row is on
the Pareto front if no other row has both a final score and a total cost at least as good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from components.metrics.names import COST_PREFIX, ScoreDirection, better
from runner.report.figures.evaluations import evaluations_frame
from runner.report.figures.picture import FigureSource, Picture
from runner.report.wording import format_range
from runner.study.figure_specs import CostSpec

if TYPE_CHECKING:
    import pandas as pd

COST_LABELS = {
    "steps": "steps",
    "seconds": "seconds of training",
    "densities": "evaluations of the log density",
    "gradients": "gradient evaluations",
    "forwards": "rows through the model",
    "environment_steps": "environment steps",
    "cpu_seconds": "CPU seconds of training",
}


def draw_cost(spec: CostSpec, source: FigureSource) -> Picture | None:
    """Draw the figure; None without evaluations with a cost."""
    from components.figures.samples.cost import cost_figure
    from components.figures.supervised.learning_curve import format_metric_name

    points = _list_points(spec, source)
    if points.empty:
        return None
    missing = points[points["cost"].isna()]
    table = points[~points["run"].isin(missing["run"])]
    if table.empty:
        return None
    direction = better(spec.metric) or next(
        (table.better for table in source.study.tables if spec.metric in table.metrics), None
    )
    score = spec.label or format_metric_name(spec.metric)
    cost = COST_LABELS[spec.against]
    counts = table.groupby(["panel", "method"])["replicate"].nunique()
    title = spec.title or f"{score} against {cost}"
    caption = (
        f"{title}{source.settings}; mean and central 90 % of "
        f"{format_range(list(counts), 'replicate')}; points: final scores"
    )
    if direction is not None:
        caption += ", filled on the Pareto front"
    if spec.against == "seconds" and table["is_shared"].any():
        caption += "; replicates trained side by side share their seconds"
    if len(missing):
        caption += f"; {cost} not counted for {', '.join(missing['method'].unique())}"
    curves = _summarise(table, ["panel", "method", "steps"])
    finals = _summarise(table, ["panel", "method"])
    finals = mark_front(finals, "cost", "mean", direction)
    return Picture(cost_figure(curves, finals, direction, cost, score), caption)


def _list_points(spec: CostSpec, source: FigureSource) -> pd.DataFrame:
    """Finite score and cost of every evaluation, NaN for a cost that was not counted."""
    frame = evaluations_frame(source.runs, source.names, spec.cell, [spec.metric])
    if frame.empty:
        return frame
    points: pd.DataFrame = frame[np.isfinite(frame["value"])]
    cost = points.get(spec.against, points.get(COST_PREFIX + spec.against, np.nan))
    return points.assign(method=points["row"].map(source.names), cost=cost)


def _summarise(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean cost, mean score and central 90 % interval of the scores over the last lines of all
    replicates.
    """
    last = table.drop_duplicates([*keys, "replicate"], keep="last")
    groups = last.groupby(keys, sort=False)
    values = groups["value"]
    return (
        groups.agg(cost=("cost", "mean"), mean=("value", "mean"))
        .assign(low=values.quantile(0.05), high=values.quantile(0.95))
        .reset_index()
    )


def mark_front(
    points: pd.DataFrame, cost: str, score: str, direction: ScoreDirection | None
) -> pd.DataFrame:
    """Points with a column ``front``: True for those on the Pareto front of their panel."""
    points = points.assign(front=False)
    for _, group in points.groupby("panel"):
        ends = list(zip(group[cost], group[score], strict=True))
        points.loc[group.index, "front"] = pareto_front(ends, direction)
    return points


def pareto_front(points: list[tuple[float, float]], direction: ScoreDirection | None) -> list[bool]:
    """True for each (cost, score) that no other point dominates; all False without a direction."""
    if direction is None:
        return [False] * len(points)
    sign = 1.0 if direction == "lower" else -1.0
    losses = [(cost, sign * score) for cost, score in points]
    return [
        not any(c <= cost and s <= score and (c, s) != (cost, score) for c, s in losses)
        for cost, score in losses
    ]
