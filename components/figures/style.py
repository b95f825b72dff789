"""Common style of all figures, built only on ``matplotlib.figure.Figure``, so that drawing requires
neither a display nor global state.

"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

    Figures = dict[str, Figure]  # figures by file name
else:  # the import takes a quarter of a second, and datasets import their figures
    Axes = Figure = Figures = Any

# Okabe & Ito (2008): eight colours that colour-blind readers can tell apart.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY = PALETTE
MARKERS = "osD^vP*X"
LINES = ["-", "--", ":", "-."]  # line styles for series that share a colour
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "figure.dpi": 120,
}


def colour_of(k: int) -> str:
    """Colour of the k-th series."""
    return PALETTE[k % len(PALETTE)]


def series_style(k: int) -> dict[str, Any]:
    """Colour and line style of the k-th series."""
    return {"color": colour_of(k), "ls": LINES[k // len(PALETTE) % len(LINES)]}


def series_marker(k: int) -> str:
    """Marker of the k-th series: unique in its colour among the first 64."""
    return MARKERS[(k + k // len(PALETTE)) % len(MARKERS)]


def hide_label(look: Mapping[str, str]) -> str:
    """Label of a further artist of a named series: without an entry in the legend."""
    return f"_{look.get('label', '')}"


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
        figure.align_ylabels()
    return figure, list(axes.flat)


def panel_grid(n: int, most_columns: int = 4, **size: Any) -> tuple[Figure, list[Axes], int]:
    """A figure of n panels in rows, the panels, and the number of columns; the rest of the last row
    is empty."""
    columns = min(n, most_columns)
    figure, axes = new_figure(math.ceil(n / columns), columns, **size)
    for axis in axes[n:]:
        axis.set_axis_off()
    return figure, axes[:n], columns


def separate_ticks(values: Iterable[float]) -> list[float]:
    """The values with at least a tenth of their span between neighbours, from the smallest."""
    ordered = sorted(values)
    ticks = ordered[:1]
    for value in ordered:
        if value - ticks[-1] > 0.1 * (ordered[-1] - ordered[0]):
            ticks.append(value)
    return ticks


def bare(axis: Axes) -> None:
    """Remove ticks, grid and frame, for images."""
    axis.set(xticks=[], yticks=[])
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)


def scatter(axis: Axes, points: Any, **look: Any) -> None:
    """Draw dots at points [n, 2]."""
    axis.scatter(points[:, 0], points[:, 1], **look)


def label_below(axes: Sequence[Axes], columns: int, label: str) -> None:
    """Set the name of the horizontal axis below the lowest panel of each column.

    A legend below the figure would cover a common axis name.
    """
    for axis in axes[-columns:]:
        axis.set_xlabel(label, fontsize=9)


def drawn_entries(axes: Iterable[Axes]) -> dict[str, Any]:
    """Legend handles of the axes by label, each label once.

    An artist without data has no entry, and points with error bars have the entry of their line.
    """
    from matplotlib.container import ErrorbarContainer

    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if isinstance(handle, ErrorbarContainer):
                handle = handle.lines[0]
            if _has_data(handle):
                entries.setdefault(label, handle)
    return entries


def _has_data(handle: Any) -> bool:
    """False for a line or a scatter without points."""
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D

    if isinstance(handle, Line2D):
        return len(handle.get_xdata()) > 0  # type: ignore[arg-type]
    return not isinstance(handle, PathCollection) or len(handle.get_offsets()) > 0  # type: ignore[arg-type]


def legend_below(figure: Figure, axes: Iterable[Axes], fontsize: float = 8) -> None:
    """One legend of the labelled artists of all panels, as ``show_entries`` places it."""
    show_entries(figure, drawn_entries(axes), fontsize)


def show_entries(figure: Figure, entries: Mapping[str, Any], fontsize: float = 8) -> None:
    """A legend of handles by label, below all panels, or above them if there is a common axis name;
    none without entries.  The figure grows by the lines after the second."""
    if entries:
        columns = _legend_columns(figure.get_figwidth(), entries, fontsize)
        inches = fontsize / 40 * max(0, len(entries) // columns - 2)
        figure.set_figheight(figure.get_figheight() + inches)
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside upper center" if figure.get_supxlabel() else "outside lower center",
            ncols=columns,
            fontsize=fontsize,
            frameon=False,
        )


def legend_above(axis: Axes, fontsize: float = 8) -> None:
    """Put the legend of one panel between the panel and its title, which moves up."""
    entries = drawn_entries([axis])
    if not entries:
        return
    place = axis.get_subplotspec()
    panels = place.get_gridspec().ncols if place is not None else 1
    width = 0.9 * axis.figure.get_figwidth() / panels  # type: ignore[union-attr]
    columns = _legend_columns(width, entries, fontsize)
    axis.legend(
        entries.values(),
        entries.keys(),
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns,
        fontsize=fontsize,
        frameon=False,
        columnspacing=1.2,
    )
    if axis.get_title():
        rows = math.ceil(len(entries) / columns)
        axis.set_title(axis.get_title(), pad=8 + 1.75 * fontsize * rows)


def _legend_columns(inches: float, labels: Iterable[str], fontsize: float) -> int:
    """Number of columns of legend entries that fit."""
    names = list(labels)
    # a letter is about half as wide as high, and handle and gaps take nine letters
    entry = 0.5 * (max(map(len, names)) + 9) * fontsize / 72
    return max(1, min(len(names), int(inches / entry)))
