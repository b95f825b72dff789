"""Two scores against each other: a point for each method, and their Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from components.figures.style import (
    GREY,
    Figure,
    colour_of,
    legend_below,
    panel_grid,
    series_marker,
)

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = 3  # panels in a row


def trade_off_figure(points: pd.DataFrame, x_label: str, y_label: str) -> Figure:
    """Panels of points; those on the Pareto front are filled and joined by a grey line.

    Args:
        points: columns panel, method, x, y, front; a row for each method in each panel.
        x_label: label of the horizontal axes.
        y_label: label of the vertical axes.

    Returns:
        The figure.
    """
    panels = list(dict.fromkeys(points["panel"]))
    methods = list(dict.fromkeys(points["method"]))
    figure, axes, _ = panel_grid(len(panels), COLUMNS, width=3.6, height=2.8)
    for ax, panel in zip(axes, panels, strict=False):
        rows = points[points["panel"] == panel].sort_values("x")
        front = rows[rows["front"]]
        color = GREY
        ax.plot(front["x"], front["y"], color=color, lw=1.2, zorder=1, label="Pareto front")
        for row in rows.to_dict("records"):
            k = methods.index(row["method"])
            fill = colour_of(k) if row["front"] else "white"
            look: dict[str, Any] = {"color": colour_of(k), "markerfacecolor": fill, "markersize": 7}
            ax.plot(row["x"], row["y"], series_marker(k), **look, label=row["method"])
        ax.set_title(panel, loc="left")
        ax.set(xlabel=x_label, ylabel=y_label)
    legend_below(figure, axes)
    return figure
