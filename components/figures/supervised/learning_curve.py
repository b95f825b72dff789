"""Scores against the number of training points, one line per model."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from components.figures.style import PALETTE, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MARKERS = "osD^vP*X"
DASHES = ["-", (0, (4, 1.5))]


def in_words(metric: str) -> str:
    """NLPP, RMSE, accuracy, log likelihood: a metric as it is written on an axis."""
    return metric.upper() if len(metric) <= 4 else metric.replace("_", " ")


def learning_curve(table: pd.DataFrame, label: str = "training points $N$") -> Figure:
    """Mean ± SE against N, on a logarithmic axis if N > 0; one panel per metric, one line per model in the order of the table.

    The table has the columns model, n_train, mean, se, metric (one row each; an unknown se is NaN); ``label`` names the
    horizontal axis where it is not N.  A panel shows the range where most values lie; a value above it is marked by a
    triangle at the top and written out.

    Raises:
        ValueError: a column is missing.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    missing = {"model", "n_train", "mean", "se", "metric"} - set(table.columns)
    if missing:
        raise ValueError(f"the table of a learning curve lacks {', '.join(sorted(missing))}")
    metrics, models = list(dict.fromkeys(table["metric"])), list(dict.fromkeys(table["model"]))
    # The first eight models take the colours with a full line, the next eight the same colours dashed.
    look: dict[str, dict[str, Any]] = {
        model: {
            "color": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": DASHES[(i // len(PALETTE)) % len(DASHES)],
        }
        for i, model in enumerate(models)
    }
    figure, axes = new_figure(1, len(metrics), width=4.6, height=3.7)
    for ax, metric in zip(axes, metrics, strict=True):
        rows = table[table["metric"] == metric]
        sizes = sorted(rows["n_train"].unique())
        low, high = _range(rows["mean"].to_numpy(float))
        above: Counter[float] = Counter()  # how many values were written above the panel at each N
        for i, model in enumerate(models):
            own = rows[rows["model"] == model].sort_values("n_train")
            if own.empty:
                continue
            n = own["n_train"].to_numpy(float)
            if sizes[0] > 0:  # small steps sideways keep error bars of different models apart
                n = n * 1.018 ** (i - (len(models) - 1) / 2)
            mean, se = own["mean"].to_numpy(float), own["se"].fillna(0).to_numpy(float)
            ax.errorbar(n, mean, yerr=se, capsize=2, linewidth=1.5, markersize=5, elinewidth=0.9, **look[model])
            for size, at, value in zip(own["n_train"][mean > high], n[mean > high], mean[mean > high], strict=True):
                ax.plot(at, high, marker="^", color=look[model]["color"], markersize=6, clip_on=False, zorder=4)
                ax.annotate(
                    f"{value:.3g}",
                    (size, high),
                    xytext=(0, 6 + 8 * above[size]),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=look[model]["color"],
                )
                above[size] += 1
        if sizes[0] > 0:
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(FixedLocator(sizes))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:.0f}" if n >= 1 else f"{n:g}"))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_minor_formatter(NullFormatter())
            if any(b < 1.6 * a for a, b in pairwise(sizes)):  # neighbours' labels would touch
                ax.tick_params(axis="x", labelsize=6.5)
        ax.set(xlabel=label, ylabel=in_words(metric), ylim=(low, high))
    handles = [Line2D([], [], linewidth=1.5, markersize=5, label=model, **look[model]) for model in models]
    figure.legend(handles=handles, loc="outside right center", frameon=False, fontsize=9, handlelength=2.6)
    return figure


def _range(values: np.ndarray) -> tuple[float, float]:
    """Limits that leave out values more than three inter-quartile ranges above the upper quartile."""
    quarter, three_quarters = np.quantile(values, [0.25, 0.75])
    bulk = values[values <= three_quarters + 3 * (three_quarters - quarter)]
    low, high = float(bulk.min()), float(bulk.max())
    margin = 0.07 * (high - low) or 0.1
    return low - margin, high + margin
