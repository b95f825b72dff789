"""Two scores against each other: a point for each method, and the Pareto front of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from components.figures.multiples import check_columns
from components.figures.style import PALETTE, new_figure, series_marker, series_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = 3  # panels next to each other


def trade_off_figure(points: pd.DataFrame, x_label: str, y_label: str) -> Figure:
    """Panels of points, filled on the Pareto front, which a grey line joins.

    Args:
        points: columns panel, method, x, y, front; a row for each method in each panel.
        x_label: label of the horizontal axes.
        y_label: label of the vertical axes.

    Returns:
        The figure.

    Raises:
        ValueError: a column is missing.
    """
    from matplotlib.lines import Line2D

    check_columns(points, {"panel", "method", "x", "y", "front"}, "a trade-off")
    panels = list(dict.fromkeys(points["panel"]))
    methods = list(dict.fromkeys(points["method"]))
    columns = min(COLUMNS, len(panels))
    figure, axes = new_figure(math.ceil(len(panels) / columns), columns, width=3.6, height=2.8)
    colours = [series_style(k)["color"] for k in range(len(methods))]
    for ax, panel in zip(axes, panels, strict=False):
        rows = points[points["panel"] == panel].sort_values("x")
        front = rows[rows["front"]]
        ax.plot(front["x"], front["y"], color=PALETTE[7], lw=1.2, zorder=1)
        for method, x, y, on_front in zip(
            rows["method"], rows["x"], rows["y"], rows["front"], strict=True
        ):
            k = methods.index(method)
            fill = colours[k] if on_front else "white"
            ax.plot(x, y, series_marker(k), color=colours[k], markerfacecolor=fill, markersize=7)
        ax.set_title(panel, loc="left")
        ax.set(xlabel=x_label, ylabel=y_label)
    for ax in axes[len(panels) :]:
        ax.axis("off")
    handles = [
        Line2D([], [], ls="", marker=series_marker(k), color=colours[k], label=method)
        for k, method in enumerate(methods)
    ]
    handles.append(Line2D([], [], color=PALETTE[7], lw=1.2, label="Pareto front"))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.15 + 0.2 * math.ceil(len(handles) / 4))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    return figure
