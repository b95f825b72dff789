"""How an estimate settles: one thin line for each replicate (Gallego Figs 2.3 and 2.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from components.figures.style import PALETTE, line_look, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DARK = PALETTE[6]
BESIDE = 6  # names that a legend beside the panels can have


def evolution(table: pd.DataFrame, exact: Mapping[str, float], label: str = "iteration") -> Figure:
    """Estimates against iterations, or what ``label`` says, one panel per metric, one colour per method and one line per
    replicate; the exact value, where ``exact`` has one, is a dark line.

    The table has the columns method, replicate, step, metric, value, one row for each recorded estimate.

    Raises:
        ValueError: a column is missing.
    """
    from matplotlib.lines import Line2D

    missing = {"method", "replicate", "step", "metric", "value"} - set(table.columns)
    if missing:
        raise ValueError(f"the table of an evolution lacks {', '.join(sorted(missing))}")
    metrics = list(dict.fromkeys(table["metric"]))
    looks = {str(method): line_look(k) for k, method in enumerate(dict.fromkeys(table["method"]))}
    figure, axes = new_figure(1, len(metrics), width=4.8, height=3.4)
    for ax, metric in zip(axes, metrics, strict=True):
        rows = table[table["metric"] == metric]
        for (method, _), line in rows.groupby(["method", "replicate"], sort=False):
            ax.plot(line["step"], line["value"], **looks[str(method)], lw=1.1, alpha=0.75)
        if metric in exact:
            ax.axhline(exact[metric], color=DARK, lw=1.6, zorder=3)
        ax.set(xlabel=label, ylabel=f"estimated {metric.replace('_', ' ')}")
    handles = [Line2D([], [], **look, lw=1.6, label=name) for name, look in looks.items()]
    if exact:
        handles.append(Line2D([], [], color=DARK, lw=1.6, label="exact"))
    if len(metrics) == 1 and len(handles) > BESIDE:  # beside a single panel they would leave it no room
        figure.set_size_inches(6.4, 3.6 + 0.2 * math.ceil(len(handles) / 2))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    else:
        figure.legend(handles=handles, loc="outside right center")
    return figure
