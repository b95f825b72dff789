"""How an estimate settles: one thin line for each replicate (Gallego Figs 2.3 and 2.5), or a band
of them all (Fig 4.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.figures.multiples import COLUMNS, MOST, check_columns, small_multiples
from components.figures.style import PALETTE, new_figure, series_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK = PALETTE[6]
BESIDE = 6  # names that a legend next to the panels can have
SHORT = 16  # characters of the longest of them


def evolution(
    table: pd.DataFrame,
    exact: Mapping[str, float],
    label: str = "iteration",
    *,
    band: bool = False,
    words: Mapping[str, str] | None = None,
    known: str = "exact",
) -> Figure:
    """Estimates against iterations, or what ``label`` says, one panel per metric, one colour per
    method and one line per replicate, or with ``band`` their mean and where the central 90 % of
    them lie; the exact value, where ``exact`` has one, is a dark line, which the legend calls
    ``known``.  ``words``: how the axis of a metric is called.

    The table has the columns method, replicate, step, metric, value, one row for each recorded
    estimate.

    Raises:
        ValueError: a column is missing.
    """
    check_columns(table, {"method", "replicate", "step", "metric", "value"}, "an evolution")
    metrics = list(dict.fromkeys(table["metric"]))
    looks = {
        str(method): series_style(k) for k, method in enumerate(dict.fromkeys(table["method"]))
    }

    def lines(ax: Axes, metric: str, method: str, look: dict[str, Any], own: bool) -> None:
        rows = table[(table["metric"] == metric) & (table["method"] == method)]
        if not rows.empty:
            _draw_lines(ax, rows, look, own, band)

    words = words or {}
    if len(looks) > MOST:
        figure, panels = small_multiples(metrics, list(looks), lines)
        _mark_multiples(figure, panels, exact, words, known)
        figure.supxlabel(label, fontsize=9)
        return figure
    figure, axes = new_figure(1, len(metrics), width=4.8, height=3.4)
    for metric, ax in zip(metrics, axes, strict=True):
        for method, look in looks.items():
            lines(ax, metric, method, look, True)
        if metric in exact:
            ax.axhline(exact[metric], color=DARK, lw=1.6, zorder=3)
        ax.set(xlabel=label, ylabel=format_axis_label(metric, words))
    _add_legend(figure, looks, known if exact else None, len(metrics) == 1, band)
    return figure


def _add_legend(
    figure: Figure, looks: Mapping[str, Any], known: str | None, single: bool, band: bool
) -> None:
    """Names of the methods and, if ``known``, of the exact value, on the right of the panels or
    below a single one."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **look, lw=1.6, label=name) for name, look in looks.items()]
    if known is not None:
        handles.append(Line2D([], [], color=DARK, lw=1.6, label=known))
    # next to a single panel they would leave it no room
    wide = len(handles) > BESIDE or max(map(len, looks)) > SHORT
    if single and (band or wide):
        figure.set_size_inches(6.4, 3.6 + 0.2 * math.ceil(len(handles) / 2))
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False
        )
    else:
        figure.legend(handles=handles, loc="outside right center", frameon=False)


def _mark_multiples(
    figure: Figure,
    panels: Mapping[str, list[Axes]],
    exact: Mapping[str, float],
    words: Mapping[str, str],
    known: str,
) -> None:
    """Labels and exact values of small multiples."""
    from matplotlib.lines import Line2D

    for metric, axes in panels.items():
        for ax in axes[::COLUMNS]:
            ax.set_ylabel(format_axis_label(metric, words), fontsize=7)
        for ax in axes if metric in exact else ():
            ax.axhline(exact[metric], color=DARK, lw=1.0, zorder=3)
    if exact:
        handles = [Line2D([], [], color=DARK, lw=1.0, label=known)]
        figure.legend(handles=handles, loc="outside lower right", fontsize=8, frameon=False)


def format_axis_label(metric: str, words: Mapping[str, str]) -> str:
    """How the axis of a metric is called."""
    return words.get(metric, f"estimated {metric.replace('_', ' ')}")


def replicate_band(
    own: pd.DataFrame,
) -> tuple[pd.Series[float], pd.Series[float], pd.Series[float]]:
    """Mean over the replicates of one method, and where their central 90 % begin and end, by
    step."""
    # the end of a replicate is an evaluation too
    last = own.drop_duplicates(["replicate", "step"], keep="last")
    of_step = last.groupby("step")["value"]
    return of_step.mean(), of_step.quantile(0.05), of_step.quantile(0.95)


def _draw_lines(ax: Axes, rows: pd.DataFrame, look: dict[str, Any], own: bool, band: bool) -> None:
    """Estimates of one method; in the panel of another one, only their mean."""
    if not own:
        mean = replicate_band(rows)[0]
        ax.plot(mean.index.to_numpy(float), mean.to_numpy(float), **look, lw=0.8, zorder=1)
    elif band:
        _band(ax, rows, look)
    else:
        for replicate, line in rows.groupby("replicate", sort=False):
            label = f"replicate {replicate}"
            ax.plot(line["step"], line["value"], **look, lw=1.1, alpha=0.75, label=label)


def _band(ax: Axes, own: pd.DataFrame, look: dict[str, Any]) -> None:
    """``replicate_band``, drawn."""
    mean, low, high = replicate_band(own)
    ax.fill_between(
        low.index.to_numpy(float),
        low.to_numpy(float),
        high.to_numpy(float),
        color=look["color"],
        alpha=0.2,
        lw=0,
    )
    ax.plot(mean.index.to_numpy(float), mean.to_numpy(float), **look, lw=1.6)
