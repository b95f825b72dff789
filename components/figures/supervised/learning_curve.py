"""Scores against the number of training points, one line per model."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from components.figures.multiples import COLUMNS, MOST, small_multiples
from components.figures.style import MARKERS, PALETTE, Axes, Figure, legend_below, new_figure

if TYPE_CHECKING:
    import pandas as pd


def format_metric_name(metric: str) -> str:
    """NLPP, RMSE, accuracy, log likelihood: a metric as it is written on an axis."""
    return metric.upper() if len(metric) <= 4 else metric.replace("_", " ")


def learning_curve(
    table: pd.DataFrame, label: str = "training points $N$", logarithmic: bool = True
) -> Figure:
    """Mean ± SE against N, on a logarithmic axis if N > 0; one panel per metric, one line per model
    in the order of the table; of more than eight models each has a panel of its own.

    The table has the columns model, n_train, mean, se, metric (one row each; an unknown se is NaN);
    ``label`` names the horizontal axis where it is not N.  A column floor has values that a mean
    cannot be below: a dashed line, shaded up to the mean.  A panel shows the range where most
    values lie; a value above it is marked by a triangle at the top.
    """
    metrics = list(dict.fromkeys(table["metric"]))
    models = list(dict.fromkeys(table["model"]))
    look: dict[str, dict[str, Any]] = {
        model: {"color": colour, "marker": marker, "ls": "-", "label": model}
        for model, colour, marker in zip(models, PALETTE, MARKERS, strict=False)
    }
    limits = {
        metric: _axis_limits(_finite_values(table[table["metric"] == metric])) for metric in metrics
    }
    if len(models) > MOST:
        figure, panels = small_multiples(
            metrics,
            models,
            lambda ax, metric, model, line, own: _line(
                ax,
                _of(table, metric, model),
                limits[metric][1],
                0.0,
                line | {"marker": "o" if own else ""},
                own,
            ),
        )
    else:
        figure, axes = new_figure(1, len(metrics), width=4.6, height=3.7)
        panels = {metric: [ax] for metric, ax in zip(metrics, axes, strict=True)}
        for metric, ax in zip(metrics, axes, strict=True):
            # small steps sideways keep error bars of different models apart
            for i, model in enumerate(models):
                aside = (i - (len(models) - 1) / 2) * logarithmic
                own = _of(table, metric, model)
                _line(ax, own, limits[metric][1], aside, look[model], True)
        legend_below(figure, axes)
    for metric, axes in panels.items():
        sizes = sorted(table[table["metric"] == metric]["n_train"].unique())
        for k, ax in enumerate(axes):
            if logarithmic:
                _scale_sizes(ax, sizes, len(axes) > 1)
            ax.set(ylim=limits[metric])
            if len(axes) == 1:
                ax.set(xlabel=label, ylabel=format_metric_name(metric))
            elif k % COLUMNS == 0:
                ax.set_ylabel(format_metric_name(metric), fontsize=8)
    if len(models) > MOST:
        figure.supxlabel(label, fontsize=9)
    return figure


def _scale_sizes(ax: Axes, sizes: list[float], small: bool) -> None:
    """A logarithmic axis with a tick at each size, if none is 0."""
    if sizes[0] <= 0:
        return
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:.0f}" if n >= 1 else f"{n:g}" for n in sizes])
    ax.minorticks_off()
    # neighbours' labels would touch
    if small or any(b < 1.6 * a for a, b in pairwise(sizes)):
        ax.tick_params(axis="x", labelsize=6.5, labelrotation=45 if small else 0)


def _of(table: pd.DataFrame, metric: str, model: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["model"] == model)].sort_values("n_train")


def _line(
    ax: Axes,
    own: pd.DataFrame,
    high: float,
    aside: float,
    look: dict[str, Any],
    told: bool,
) -> None:
    """One model's line; with ``told`` its error bars, and a triangle for each value above the
    panel."""
    if own.empty:
        return
    n = own["n_train"].to_numpy(float)
    if n.min() > 0:
        n = n * 1.018**aside
    mean = own["mean"].to_numpy(float)
    se = own["se"].fillna(0).to_numpy(float)
    if not told:
        ax.plot(n, mean, linewidth=0.8, zorder=1, **look)
        return
    if "floor" in own:
        floor = own["floor"].to_numpy(float)
        ax.plot(n, floor, ls="--", linewidth=1, color=look["color"])
        ax.fill_between(n, floor, mean, color=look["color"], alpha=0.12, linewidth=0)
    ax.errorbar(n, mean, yerr=se, capsize=2, linewidth=1.5, markersize=5, elinewidth=0.9, **look)
    beyond = n[mean > high]
    mark = {"color": look["color"], "markersize": 6, "clip_on": False, "zorder": 4}
    ax.plot(beyond, np.full_like(beyond, high), "^", **mark)


def _finite_values(rows: pd.DataFrame) -> np.ndarray:
    """Means, and floors where there are some."""
    values = rows[[c for c in ("mean", "floor") if c in rows]].to_numpy(float).ravel()
    return values[np.isfinite(values)]


def _axis_limits(values: np.ndarray) -> tuple[float, float]:
    """Limits that leave out values more than three inter-quartile ranges above the upper
    quartile."""
    quarter, three_quarters = np.quantile(values, [0.25, 0.75])
    bulk = values[values <= three_quarters + 3 * (three_quarters - quarter)]
    low = float(bulk.min())
    high = float(bulk.max())
    margin = 0.07 * (high - low) or 0.1
    return low - margin, high + margin
