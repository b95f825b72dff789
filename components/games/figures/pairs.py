"""Round robin: scores of each agent against each opponent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from components.figures.style import Figure, new_figure

COLUMNS = 2  # panels per row
ZERO = 1e-4  # scores below this share of the largest one are drawn as 0


def pair_figure(
    scores: Mapping[str, np.ndarray], agents: Sequence[str], opponents: Sequence[str]
) -> Figure:
    """Plot one matrix per game, with colours from the lowest to the highest score of the game.

    Args:
        scores: by game, mean scores [agents, opponents]; NaN if missing.
        agents: labels of the rows.
        opponents: labels of the columns.

    Returns:
        The figure.
    """
    columns = min(COLUMNS, len(scores))
    figure, axes = new_figure(
        math.ceil(len(scores) / columns),
        columns,
        width=1.6 + 0.42 * len(opponents),
        height=1.3 + 0.25 * len(agents),
    )
    for ax, (game, matrix) in zip(axes, scores.items(), strict=False):
        ax.imshow(matrix, cmap="viridis", aspect="auto")
        lowest, highest = (float(f(matrix)) for f in (np.nanmin, np.nanmax))
        for (i, j), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                is_dark = value < (lowest + highest) / 2
                colour = "white" if is_dark else "black"
                is_zero = abs(value) < ZERO * max(abs(lowest), abs(highest))
                text = "0" if is_zero else f"{value:.3g}"
                ax.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
        ax.set_xticks(range(len(opponents)), opponents, rotation=45, ha="right", fontsize=7)
        ax.set_yticks(range(len(agents)), agents, fontsize=7)
        ax.grid(False)
        ax.set_title(game, loc="left")
    for ax in axes[len(scores) :]:
        ax.axis("off")
    return figure
