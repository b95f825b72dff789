"""Scores of all replicates, a violin or a box for each method (Boustati Figs 6.1, 6.2, 6.4 and
D.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from components.figures.style import (
    BLACK,
    BLUE,
    ORANGE,
    PALETTE,
    Axes,
    Figure,
    colour_of,
    new_figure,
    show_entries,
)

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["violin", "box"]
WIDE = 30.0  # ratio of the largest to the smallest score from which the axis is logarithmic
# plain colours for the first eight methods, hatched for the next eight
HATCHES = ["", "////", "...."]
POINTS = 100  # grid points of a density


def spread(
    table: pd.DataFrame,
    kind: Kind,
    levels: Mapping[str, float],
    marked: Collection[tuple[str, str]] = (),
    label: str = "",
    words: Mapping[str, str] | None = None,
) -> Figure:
    """Violins or boxes of scores over replicates, one panel per metric, below each other.

    A panel has a violin (with its quartiles and median) or a box (whiskers at 1.5
    inter-quartile ranges) for each method, side by side within each group where there are
    several groups.

    The table has the columns method, group, metric, value, one row for each replicate;
    values that are not finite are left out.  ``levels`` are dashed lines, by metric; a
    metric without one, with positive values that are ``WIDE`` apart, has a logarithmic
    axis.  ``marked`` are pairs of method and group with a golden dashed line.  ``label``
    names the groups, ``words`` the metrics.
    """
    metrics, methods, groups = (
        list(dict.fromkeys(table[c])) for c in ("metric", "method", "group")
    )
    grouped = len(groups) > 1
    positions = {
        (m, g): i + j * (len(methods) + 1.5)
        for j, g in enumerate(groups)
        for i, m in enumerate(methods)
    }  # a gap of one and a half methods between groups
    width = min(14.0, max(4.5, 1.2 + (0.16 if grouped else 0.55) * len(positions)))
    figure, axes = new_figure(len(metrics), 1, width=width, height=3.0, sharex=True)
    for ax, metric in zip(axes, metrics, strict=True):
        rows = table[(table["metric"] == metric) & np.isfinite(table["value"])]
        log = logarithmic(rows["value"].to_numpy(float), metric in levels)
        if log:
            ax.set_yscale("log")
        for (method, group), place in positions.items():
            values = rows[(rows["method"] == method) & (rows["group"] == group)]["value"].to_numpy(
                float
            )
            if len(values):
                look = _look(methods.index(method), grouped) | {"label": method if grouped else "_"}
                _one(ax, kind, values, place, log, look)
            if (method, group) in marked:
                ax.axvline(place, color=ORANGE, ls="--", lw=1.8, zorder=0.5, label="β chosen")
        if metric in levels:
            ax.axhline(levels[metric], color=BLACK, ls="--", lw=1)
        ax.set_ylabel((words or {}).get(metric, metric))
        ax.grid(visible=False, axis="x")
    _ticks(axes[-1], methods, groups, positions, label)
    _legend(figure, methods if grouped else [], bool(marked))
    return figure


def logarithmic(values: np.ndarray, levelled: bool) -> bool:
    """True if the axis of a metric is logarithmic.

    The finite values must be positive and ``WIDE`` apart, with no level among them.
    """
    finite = values[np.isfinite(values)]
    positive = len(finite) > 0 and finite.min() > 0
    return bool(not levelled and positive and finite.max() > WIDE * finite.min())


def _look(i: int, grouped: bool) -> dict[str, Any]:
    """Colour and hatch of the i-th method; all methods look alike if the axis shows their names."""
    if not grouped:
        return {"facecolor": BLUE, "hatch": ""}
    return {
        "facecolor": colour_of(i),
        "hatch": HATCHES[(i // len(PALETTE)) % len(HATCHES)],
    }


def _one(
    ax: Axes, kind: Kind, values: np.ndarray, place: float, log: bool, look: Mapping[str, Any]
) -> None:
    label = look["label"]
    if kind == "box":
        for artist in chain(*draw_boxes(ax, [values], [place], [look]).values()):
            artist.set_label(label)
        return
    shape = np.log10(values) if log else values  # the density is on the scale of the axis
    grid = np.linspace(shape.min(), shape.max(), POINTS)
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    if np.ptp(shape) > 0:
        from matplotlib.mlab import GaussianKDE

        density = GaussianKDE(shape, "scott").evaluate(grid)
        half = 0.42 * density / density.max()
        y = 10**grid if log else grid
        ax.fill_betweenx(y, place - half, place + half, alpha=0.55, lw=0.5, edgecolor=BLACK, **look)
    ax.vlines(place, low, high, color=BLACK, lw=2.5, label=label)
    style: dict[str, Any] = {"color": "white", "mec": BLACK, "mew": 0.8, "zorder": 3}
    ax.plot([place], [median], "o", ms=3.5, label=label, **style)


def draw_boxes(
    ax: Axes,
    values: Sequence[np.ndarray],
    places: Sequence[float],
    looks: Sequence[Mapping[str, Any]],
) -> dict[str, list[Any]]:
    """A box for each sample, with colour and hatch; whiskers at 1.5 inter-quartile ranges.

    Returns the artists of each kind."""
    boxes = ax.boxplot(
        values,
        positions=places,
        widths=0.7,
        patch_artist=True,
        manage_ticks=False,
        flierprops={"marker": ".", "markersize": 3},
        medianprops={"color": BLACK, "lw": 1.2},
    )
    for patch, fliers, look in zip(boxes["boxes"], boxes["fliers"], looks, strict=True):
        patch.set(alpha=0.55, **look)
        fliers.set_markeredgecolor(look["facecolor"])
    return boxes


def _ticks(
    ax: Axes, methods: list[str], groups: list[str], at: Mapping[tuple[str, str], float], label: str
) -> None:
    """Names of the groups below their centres; names of the methods if there is only one group."""
    if len(groups) > 1:
        ax.set_xticks([float(np.mean([at[m, g] for m in methods])) for g in groups], groups)
        ax.set_xlabel(label)
        return
    turned = len(methods) > 4
    ax.set_xticks(
        [at[m, groups[0]] for m in methods],
        methods,
        rotation=35 if turned else 0,
        fontsize=9,
        ha="right" if turned else "center",
        rotation_mode="anchor" if turned else None,
    )


def _legend(figure: Figure, methods: list[str], marked: bool) -> None:
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: dict[str, Artist] = {
        method: Patch(alpha=0.55, edgecolor=BLACK, lw=0.5, **_look(i, True))
        for i, method in enumerate(methods)
    }
    if marked:
        entries["β chosen"] = Line2D([], [], color=ORANGE, ls="--", lw=1.8)
    show_entries(figure, entries)
