"""Lines of a table: one panel per metric or, if there are more lines than colours, small multiples
with one panel per line and the others pale in the background."""

from __future__ import annotations

import math
from collections.abc import Callable
from textwrap import fill
from typing import TYPE_CHECKING, Any

from components.figures.style import (
    BLUE,
    PALETTE,
    Axes,
    Figure,
    new_figure,
    series_marker,
    series_style,
)

if TYPE_CHECKING:
    import pandas as pd

MOST = len(PALETTE)  # maximum lines on shared axes: the number of distinguishable colours
COLUMNS = 5
TITLE_WIDTH = 26  # characters in a line of a panel's title
BACKGROUND_LINE_STYLE: dict[str, Any] = {"color": "#c9c9c9", "ls": "-"}

# draws the line of some rows of the table; the marker is None for background lines
DrawLine = Callable[[Axes, "pd.DataFrame", dict[str, Any], str | None], None]


def line_panels(
    table: pd.DataFrame,
    by: str,
    draw: DrawLine,
    label: str,
    name_metric: Callable[[str], str],
) -> tuple[Figure, dict[str, list[Axes]]]:
    """Draw lines for the names in the column ``by`` against ``label``.

    Returns:
        The figure, and the panels of each metric: one, or one for each name.
    """
    metrics = list(dict.fromkeys(table["metric"]))
    names = list(dict.fromkeys(table[by]))
    lines = dict(list(table.groupby(["metric", by])))
    panels: dict[str, list[Axes]] = {}
    if len(names) <= MOST:
        figure, axes = new_figure(1, len(metrics), width=4.7, height=3.5)
        for metric, ax in zip(metrics, axes, strict=True):
            for k, name in enumerate(names):
                if (metric, name) in lines:
                    look = series_style(k) | {"label": name}
                    draw(ax, lines[metric, name], look, series_marker(k))
            ax.set(xlabel=label, ylabel=name_metric(metric))
            panels[metric] = [ax]
        return figure, panels
    rows = math.ceil(len(names) / COLUMNS)
    figure, axes = new_figure(rows * len(metrics), COLUMNS, width=1.9, height=1.6, sharex=True)
    for i, metric in enumerate(metrics):
        block = axes[i * rows * COLUMNS : (i + 1) * rows * COLUMNS]
        for ax in block[len(names) :]:
            ax.axis("off")
        panels[metric] = block[: len(names)]
        for k, (ax, name) in enumerate(zip(panels[metric], names, strict=True)):
            for other in names:
                if other != name and (metric, other) in lines:
                    draw(ax, lines[metric, other], BACKGROUND_LINE_STYLE, None)
            if (metric, name) in lines:
                draw(ax, lines[metric, name], {"color": BLUE, "ls": "-"}, "o")
            ax.set_title(fill(name, TITLE_WIDTH), fontsize=8)
            ax.tick_params(labelsize=7)
            if k % COLUMNS:
                ax.tick_params(labelleft=False)
                ax.sharey(block[0])
            else:
                ax.set_ylabel(name_metric(metric), fontsize=8)
            if k + COLUMNS >= len(names):  # the lowest panel of its block
                ax.tick_params(labelbottom=True)
    figure.supxlabel(label, fontsize=9)
    return figure, panels
