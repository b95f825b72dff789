"""Common style of all figures, built only on ``matplotlib.figure.Figure``.

Drawing therefore needs no display and no state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a quarter of a second to import, and datasets name their figures
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): eight colours that colour-blind readers can tell apart.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
LINES = ["-", "--", ":", "-."]  # for series that share a colour, if there are more than colours
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "figure.dpi": 120,
    "savefig.bbox": "tight",
}


def series_style(k: int) -> dict[str, Any]:
    """Colour and line style of the k-th of many."""
    return {"color": PALETTE[k % len(PALETTE)], "ls": LINES[k // len(PALETTE) % len(LINES)]}


def new_figure(
    rows: int = 1, columns: int = 1, width: float = 4.5, height: float = 3.2, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of ``rows`` × ``columns`` axes (returned flat, row by row), each ``width`` ×
    ``height`` inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, list(axes.flat)
