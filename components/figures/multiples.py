"""Small multiples: where more lines share axes than there are colours, a panel for each, the others
pale behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from components.figures.style import BLUE, PALETTE, Axes, Figure, new_figure

MOST = len(PALETTE)  # lines that share axes: as many as distinguishable colours
COLUMNS = 5
BACKGROUND_LINE_STYLE: dict[str, Any] = {"color": "#c9c9c9", "ls": "-"}
BEFORE: dict[str, Any] = {"color": BLUE, "ls": "-"}


def small_multiples(
    metrics: Sequence[str],
    names: Sequence[str],
    draw: Callable[[Axes, str, str, dict[str, Any], bool], None],
) -> tuple[Figure, dict[str, list[Axes]]]:
    """A block of panels for each metric; ``draw(ax, metric, name, look, own)`` draws one line,
    ``own`` in the panel that is its own, after all the others.  Returns the figure and the panels
    of each metric, in the order of ``names``."""
    rows = math.ceil(len(names) / COLUMNS)
    figure, axes = new_figure(rows * len(metrics), COLUMNS, width=1.9, height=1.6, sharex=True)
    panels: dict[str, list[Axes]] = {}
    for i, metric in enumerate(metrics):
        block = axes[i * rows * COLUMNS : (i + 1) * rows * COLUMNS]
        for ax in block[len(names) :]:
            ax.axis("off")
        panels[metric] = block[: len(names)]
        for k, (ax, name) in enumerate(zip(panels[metric], names, strict=True)):
            for other in names:
                if other != name:
                    draw(ax, metric, other, BACKGROUND_LINE_STYLE, False)
            draw(ax, metric, name, BEFORE, True)
            ax.set_title(name, fontsize=8)
            ax.tick_params(labelsize=7)
            if k % COLUMNS:
                ax.tick_params(labelleft=False)
                ax.sharey(panels[metric][0])
            if k + COLUMNS >= len(names):  # nothing of its block below it
                ax.tick_params(labelbottom=True)
    return figure, panels
