"""Scores against cost: curves over evaluations with bands, and the Pareto front of final scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from components.figures.multiples import BACKGROUND_LINE_STYLE
from components.figures.style import (
    GREY,
    PALETTE,
    Axes,
    Figure,
    hide_label,
    legend_below,
    new_figure,
    series_marker,
    series_style,
)

if TYPE_CHECKING:
    import pandas as pd

    from components.metrics.names import ScoreDirection

Looks = dict[str, dict[str, Any]]  # method -> style of its line and marker


def cost_figure(
    curves: pd.DataFrame,
    finals: pd.DataFrame,
    better: ScoreDirection | None,
    cost_label: str,
    score_label: str,
    own: Sequence[str] = (),
) -> Figure:
    """Curves on the left, final scores against total costs on the right; a row for each panel.

    The grey line of the right panels joins the methods on the Pareto front.  If there are more
    methods than colours, only the user's own and those on the front have a colour, and a name next
    to their final score in place of the legend.

    Args:
        curves: columns panel, method, cost, mean, low, high; a row for each evaluation.
        finals: the same columns and ``front``; a row for each method.
        better: direction of the score; None for no Pareto front.
        cost_label: label of the horizontal axes.
        score_label: label of the vertical axes.
        own: the user's methods.

    Returns:
        The figure.
    """
    panels = list(dict.fromkeys(curves["panel"]))
    methods = list(dict.fromkeys(curves["method"]))
    is_crowded = len(methods) > len(PALETTE)
    named = list(dict.fromkeys([*own, *finals.loc[finals["front"], "method"]]))
    looks: Looks = {method: BACKGROUND_LINE_STYLE | {"marker": "o"} for method in methods}
    for k, method in enumerate(named if is_crowded else methods):
        looks[method] = series_style(k) | {"marker": series_marker(k), "zorder": 2.5}
    figure, axes = new_figure(len(panels), 2, width=4.2, height=3.1)
    for i, panel in enumerate(panels):
        left_axis = axes[2 * i]
        right_axis = axes[2 * i + 1]
        _draw_curves(left_axis, curves[curves["panel"] == panel], looks)
        _draw_finals(right_axis, finals[finals["panel"] == panel], looks, better)
        if is_crowded:
            _name_finals(right_axis, finals[finals["panel"] == panel], named, looks)
        left_axis.set(xlabel=cost_label, ylabel=score_label)
        right_axis.set(xlabel=f"total {cost_label}", ylabel=f"final {score_label}")
        left_axis.set_title(panel, loc="left")
    _scale_costs(axes[::2], curves["cost"].tolist())
    _scale_costs(axes[1::2], finals["cost"].tolist())
    if not is_crowded:
        legend_below(figure, axes)
    return figure


def _draw_curves(ax: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    for method, look in looks.items():
        line = rows[rows["method"] == method]
        if line.empty:
            continue
        look = look | {"label": method}
        x, mean, low, high = (line[c].to_numpy(float) for c in ("cost", "mean", "low", "high"))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.2, lw=0, label=hide_label(look))
        ax.plot(x, mean, **look, lw=1.6, markevery=[-1])


def _draw_finals(ax: Axes, rows: pd.DataFrame, looks: Looks, better: ScoreDirection | None) -> None:
    front = rows[rows["front"]].sort_values("cost")
    if better is not None and len(front) > 1:
        color = GREY
        ax.plot(front["cost"], front["mean"], color=color, lw=1.2, zorder=1, label="Pareto front")
    for row in rows.to_dict("records"):
        look = looks[row["method"]]
        mean = row["mean"]
        ax.errorbar(
            row["cost"],
            mean,
            yerr=[[mean - row["low"]], [row["high"] - mean]],
            **look,
            markerfacecolor=look["color"] if row["front"] or better is None else "white",
            markersize=7,
            elinewidth=1.2,
            label=hide_label({"label": row["method"]}),
        )


def _name_finals(ax: Axes, rows: pd.DataFrame, named: list[str], looks: Looks) -> None:
    """Write the names of some methods next to their final scores."""
    for row in rows[rows["method"].isin(named)].to_dict("records"):
        ax.annotate(
            row["method"],
            (row["cost"], row["mean"]),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=7,
            color=looks[row["method"]]["color"],
        )


def _scale_costs(axes: list[Axes], costs: list[float]) -> None:
    """Logarithmic cost axes if costs span more than a factor of 30."""
    positive = [cost for cost in costs if cost > 0 and math.isfinite(cost)]
    if positive and max(positive) > 30 * min(positive):
        for ax in axes:
            ax.set_xscale("log")
