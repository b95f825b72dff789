"""Mean ranks of several methods on one axis, with bars joining indistinguishable ones (Demšar 2006,
Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.figures.style import BLACK, BLUE, Figure, new_figure

STEP = 0.30
DENSE = 0.21  # spacing of rank labels with many methods
CLOSE = 0.11  # inches between the lines of names, and between bars
MIN_SPARSE_LABEL_RANKS = 14  # number of ranks above which every fifth is labelled
WIDTH = 6.4
BROAD = 9.0  # the same with more methods
LEAST_MARGIN = 1.9  # widths in inches of the figure, and of the names on either side
LETTER = 0.075  # inches, the width of a letter of a name


def critical_difference_diagram(
    ranks: Mapping[str, float], groups: Sequence[Sequence[str]], distance: float | None = None
) -> Figure:
    """Critical difference diagram of the mean ranks of methods.

    Args:
        ranks: ranks by name; 1 is best and is drawn on the left.
        groups: names joined by a bar.
        distance: the critical difference, drawn above the axis if it is the same for all pairs.
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    k = len(names)
    n_left = (k + 1) // 2
    is_dense = k > MIN_SPARSE_LABEL_RANKS
    step = DENSE if is_dense else STEP
    margin = max(LEAST_MARGIN, 0.7 + LETTER * max(map(len, names)))
    width = (BROAD if is_dense else WIDTH) + 2 * (margin - LEAST_MARGIN)
    bars = CLOSE * len(groups) + 0.15
    top = 0.75 if distance is not None else 0.45
    height = top + bars + step * n_left + 0.1
    figure, (ax,) = new_figure(1, 1, width=width, height=height)
    figure.set_layout_engine("none")  # everything is placed in inches
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    scale = (width - 2 * margin) / max(k - 1, 1)

    def at(rank: float) -> float:
        return margin + (rank - 1) * scale

    ax.plot([at(1), at(k)], [top, top], color=BLACK, lw=1.2)
    for rank in range(1, k + 1):
        ax.plot([at(rank)] * 2, [top - 0.07, top], color=BLACK, lw=1.0)
        if rank % 5 and rank > (1 if is_dense else 9):  # labels would touch
            continue
        ax.text(at(rank), top - 0.12, str(rank), ha="center", va="bottom", fontsize=9, color=BLACK)
    if distance is not None:
        end = min(at(1 + distance), width - 0.1)
        ax.plot([at(1), end], [0.3, 0.3], color=BLACK, lw=1.6)
        for x in (at(1), end):
            ax.plot([x, x], [0.25, 0.35], color=BLACK, lw=1.6)
        ax.text(
            (at(1) + end) / 2,
            0.22,
            f"CD = {distance:.2f}",
            ha="center",
            va="bottom",
            fontsize=8,
            color=BLACK,
        )
    label: dict[str, Any] = {"va": "center", "fontsize": 9, "color": BLACK}
    for i, name in enumerate(names):
        on_left = i < n_left
        y = top + bars + step * ((i if on_left else k - 1 - i) + 0.5)
        if on_left:
            edge = margin - 0.15
            ax.text(edge - 0.06, y, f"{name}  {ranks[name]:.2f}", ha="right", **label)
        else:
            edge = width - margin + 0.15
            ax.text(edge + 0.06, y, f"{ranks[name]:.2f}  {name}", ha="left", **label)
        ax.plot([at(ranks[name])] * 2 + [edge], [top, y, y], color=BLACK, lw=0.8)
    for i, group in enumerate(groups):
        group_ranks = [ranks[name] for name in group]
        y = top + 0.12 + CLOSE * i
        ax.plot(
            [at(min(group_ranks)) - 0.05, at(max(group_ranks)) + 0.05],
            [y, y],
            color=BLUE,
            lw=3.2,
            solid_capstyle="butt",
        )
    return figure
