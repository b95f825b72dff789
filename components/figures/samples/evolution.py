"""Convergence of an estimate: one thin line for each replicate (Gallego Figs 2.3 and 2.5), or a
band of all replicates (Fig 4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.figures.multiples import line_panels
from components.figures.style import BLACK, Axes, Figure, hide_label, legend_below

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
    """Estimates against iterations (axis name ``label``): one panel per metric, one colour per
    method and one line per replicate, or with ``band`` their mean and central 90 %.  A value in
    ``exact`` is a dark line, named ``known`` in the legend.  ``words`` has the axis names of
    metrics.

    The table has the columns method, replicate, step, metric, value, one row for each recorded
    estimate.
    """

    def draw(ax: Axes, rows: pd.DataFrame, look: dict[str, Any], marker: str | None) -> None:
        if marker is None:
            mean = replicate_band(rows)[0]
            ax.plot(mean.index.to_numpy(float), mean.to_numpy(float), **look, lw=0.8, zorder=1)
        elif band:
            _band(ax, rows, look)
        else:
            for _, line in rows.groupby("replicate", sort=False):
                ax.plot(line["step"], line["value"], **look, lw=1.1, alpha=0.75)

    def name_metric(metric: str) -> str:
        return (words or {}).get(metric, f"estimated {metric.replace('_', ' ')}")

    figure, panels = line_panels(table, "method", draw, label, name_metric)
    for metric in panels.keys() & exact.keys():
        for ax in panels[metric]:
            ax.axhline(exact[metric], color=BLACK, lw=1.4, zorder=3, label=known)
    legend_below(figure, figure.axes)
    return figure


def replicate_band(
    own: pd.DataFrame,
) -> tuple[pd.Series[float], pd.Series[float], pd.Series[float]]:
    """Mean over the replicates of one method, and the ends of their central 90 %, by step."""
    # the end of a replicate is also an evaluation
    last = own.drop_duplicates(["replicate", "step"], keep="last")
    of_step = last.groupby("step")["value"]
    return of_step.mean(), of_step.quantile(0.05), of_step.quantile(0.95)


def _band(ax: Axes, own: pd.DataFrame, look: dict[str, Any]) -> None:
    """Draw ``replicate_band``."""
    mean, low, high = replicate_band(own)
    ax.fill_between(
        low.index.to_numpy(float),
        low.to_numpy(float),
        high.to_numpy(float),
        color=look["color"],
        alpha=0.2,
        lw=0,
        label=hide_label(look),
    )
    ax.plot(mean.index.to_numpy(float), mean.to_numpy(float), **look, lw=1.6)
