"""Scores against the number of training points, one line per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from components.figures.multiples import MOST, line_panels
from components.figures.style import Axes, Figure, hide_label, legend_below

if TYPE_CHECKING:
    import pandas as pd

# names that are not the score's key in words
METRIC_NAMES = {
    "medae": "median absolute error",
    "nmse_median": "median NMSE",
    "coverage90": "90 % coverage",
    "error_mean": "error of the mean",
    "error_second_moment": "error of the second moment",
    "recent_social_utility": "social utility, recent rounds",
}


def format_metric_name(metric: str) -> str:
    """Name of a metric on an axis: NLPP, RMSE, accuracy, log likelihood."""
    name = METRIC_NAMES.get(metric, metric.replace("_", " "))
    return name.upper() if len(metric) <= 4 else name


def learning_curve(
    table: pd.DataFrame, label: str = "training points $N$", logarithmic: bool = True
) -> Figure:
    """Mean ± SE against N, on a logarithmic axis if N > 0; one panel per metric, one line per model
    in the order of the table; with more than eight models each has its own panel.

    The table has the columns model, n_train, mean, se, metric (one row each; an unknown se is NaN);
    ``label`` names the horizontal axis if it is not N.  A column floor has lower bounds of the
    means, drawn as a dashed line with shading up to the mean.  A panel shows the range of most
    values; a value above it is marked by a triangle at the top.
    """
    models = list(dict.fromkeys(table["model"]))
    x = table["n_train"]
    if logarithmic and len(models) <= MOST:
        # small horizontal offsets separate error bars of different models
        x = x * 1.018 ** (table["model"].map(models.index) - (len(models) - 1) / 2)
    table = table.assign(x=x)
    limits = {
        str(metric): _axis_limits(_finite_values(rows)) for metric, rows in table.groupby("metric")
    }

    def draw(ax: Axes, rows: pd.DataFrame, look: dict[str, Any], marker: str | None) -> None:
        rows = rows.sort_values("n_train")
        x = rows["x"].to_numpy(float)
        mean = rows["mean"].to_numpy(float)
        if marker is None:
            ax.plot(x, mean, linewidth=0.8, zorder=1, **look)
            return
        colour = look["color"]
        if "floor" in rows:
            floor = rows["floor"].to_numpy(float)
            label = hide_label(look)
            ax.plot(x, floor, ls="--", linewidth=1, color=colour, label=label)
            ax.fill_between(x, floor, mean, color=colour, alpha=0.12, linewidth=0, label=label)
        bars: dict[str, Any] = {"capsize": 2, "linewidth": 1.5, "markersize": 5, "elinewidth": 0.9}
        ax.errorbar(x, mean, yerr=rows["se"].fillna(0), marker=marker, **bars, **look)
        high = limits[rows["metric"].iloc[0]][1]
        beyond = x[mean > high]
        mark: dict[str, Any] = {"markersize": 6, "clip_on": False, "zorder": 4}
        if len(beyond):  # unclipped markers without a position would shrink the panel
            ax.plot(beyond, np.full_like(beyond, high), "^", color=colour, **mark)

    figure, panels = line_panels(table, "model", draw, label, format_metric_name)
    for metric, axes in panels.items():
        sizes = sorted(table[table["metric"] == metric]["n_train"].unique())
        for ax in axes:
            if logarithmic:
                _scale_sizes(ax, sizes, len(axes) > 1)
            ax.set_ylim(*limits[metric])
    legend_below(figure, figure.axes)
    return figure


def _scale_sizes(ax: Axes, sizes: list[float], small: bool) -> None:
    """A logarithmic axis with a tick at each size, if none is 0; labels keep a distance."""
    if sizes[0] <= 0:
        return
    ax.set_xscale("log")
    labels = []
    last = 0.0
    for n in sizes:
        text = f"{n:.0f}" if n >= 1 else f"{n:g}"
        labels.append(text if n >= 1.6 * last else "")
        last = n if labels[-1] else last
    ax.set_xticks(sizes, labels)
    ax.minorticks_off()
    if small:
        ax.tick_params(axis="x", labelsize=7, labelrotation=45)


def _finite_values(rows: pd.DataFrame) -> np.ndarray:
    """Finite means, and floors if there are any."""
    values = rows[[c for c in ("mean", "floor") if c in rows]].to_numpy(float).ravel()
    return values[np.isfinite(values)]


def _axis_limits(values: np.ndarray) -> tuple[float, float]:
    """Limits that exclude values more than three interquartile ranges above the upper quartile."""
    quarter, three_quarters = np.quantile(values, [0.25, 0.75])
    bulk = values[values <= three_quarters + 3 * (three_quarters - quarter)]
    low = float(bulk.min())
    high = float(bulk.max())
    margin = 0.07 * (high - low) or 0.1
    return low - margin, high + margin
