"""How an estimate settles: one thin line for each replicate (Gallego Figs 2.3 and 2.5), or a band
of them all (Fig 4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.figures.multiples import COLUMNS, MOST, small_multiples
from components.figures.style import BLACK, Axes, Figure, legend_below, new_figure, series_style

if TYPE_CHECKING:
    import pandas as pd


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
    """
    metrics = list(dict.fromkeys(table["metric"]))
    looks = {
        str(method): series_style(k) for k, method in enumerate(dict.fromkeys(table["method"]))
    }

    def lines(ax: Axes, metric: str, method: str, look: dict[str, Any], own: bool) -> None:
        rows = table[(table["metric"] == metric) & (table["method"] == method)]
        if not rows.empty:
            label = method if len(looks) <= MOST else None
            _draw_lines(ax, rows, look | {"label": label}, own, band)

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
            ax.axhline(exact[metric], color=BLACK, lw=1.6, zorder=3, label=known)
        ax.set(xlabel=label, ylabel=format_axis_label(metric, words))
    legend_below(figure, axes)
    return figure


def _mark_multiples(
    figure: Figure,
    panels: Mapping[str, list[Axes]],
    exact: Mapping[str, float],
    words: Mapping[str, str],
    known: str,
) -> None:
    """Labels and exact values of small multiples."""
    for metric, axes in panels.items():
        for ax in axes[::COLUMNS]:
            ax.set_ylabel(format_axis_label(metric, words), fontsize=7)
        for ax in axes if metric in exact else ():
            ax.axhline(exact[metric], color=BLACK, lw=1.0, zorder=3, label=known)
        legend_below(figure, axes)


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
        for _, line in rows.groupby("replicate", sort=False):
            ax.plot(line["step"], line["value"], **look, lw=1.1, alpha=0.75)


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
