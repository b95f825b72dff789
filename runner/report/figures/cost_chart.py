"""The cost figure as plotly.js draws it: curves, and below them final scores with their front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.figures.style import PALETTE, series_style
from runner.report.figures.charts import (
    SYMBOLS,
    Chart,
    axis_references,
    band_traces,
    is_new,
    line_trace,
    make_layout,
    numbers,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd

    from components.metrics.names import ScoreDirection


def cost_chart(
    curves: pd.DataFrame,
    finals: pd.DataFrame,
    better: ScoreDirection | None,
    cost_label: str,
    score_label: str,
) -> Chart:
    """``cost_figure``: columns panel, method, cost, mean, low, high; finals have ``front`` too."""
    panels = list(dict.fromkeys(curves["panel"]))
    methods = list(dict.fromkeys(curves["method"]))
    data: list[Chart] = []
    for i, panel in enumerate(panels):
        for k, method in enumerate(methods):
            line = curves[(curves["panel"] == panel) & (curves["method"] == method)]
            final = finals[(finals["panel"] == panel) & (finals["method"] == method)]
            if line.empty:
                continue
            references = axis_references(2 * i, method, is_new(data, method))
            band, mean = band_traces(
                references, line["cost"], line["mean"], (line["low"], line["high"]), k
            )
            data += [band, mean | ({"mode": "lines+markers"} if len(line) == 1 else {})]
            data.append(_final(2 * i + 1, method, final, k))
        front = finals[(finals["panel"] == panel) & finals["front"]].sort_values("cost")
        if better is not None and len(front) > 1:
            data.append(_front(2 * i + 1, front, i == 0))
    return {"data": data, "layout": _layout(panels, cost_label, score_label, len(methods) + 1)}


def _layout(panels: list[str], cost_label: str, score_label: str, n_names: int) -> Chart:
    """Two panels for each value of the grid, which is the first line of their vertical title."""
    titles = [(panel, kind) for panel in panels for kind in ("", "final ")]
    layout = make_layout([""] * len(titles), cost_label, n_names)
    for i, (panel, kind) in enumerate(titles):
        number = str(i + 1) if i else ""
        name = plain(panel.partition(" ")[2] or panel)
        lines = [name] if name else []
        lines.append(f"{kind}{plain(score_label)}")
        layout[f"yaxis{number}"]["title"] = {"text": "<br>".join(lines), "font": {"size": 11}}
        if kind:
            layout[f"xaxis{number}"]["title"]["text"] = f"total {plain(cost_label)}"
    return layout


def _final(axis: int, method: str, final: pd.DataFrame, k: int) -> Chart:
    """Final score and total cost of a method; an open sign is not on the front."""
    colour = series_style(k)["color"]
    symbol = SYMBOLS[k % len(SYMBOLS)]
    is_open = not bool(final["front"].all())
    return line_trace(
        axis_references(axis, method, False),
        final["cost"],
        final["mean"],
        mode="markers",
        error_y={
            "type": "data",
            "symmetric": False,
            "array": numbers(final["high"] - final["mean"]),
            "arrayminus": numbers(final["mean"] - final["low"]),
            "thickness": 1,
        },
        marker={"color": colour, "size": 10, "symbol": f"{symbol}-open" if is_open else symbol},
        hovertemplate="%{x}: %{y}",
    )


def _front(axis: int, front: pd.DataFrame, is_first: bool) -> Chart:
    return line_trace(
        axis_references(axis, "Pareto front", is_first),
        front["cost"],
        front["mean"],
        line={"color": PALETTE[7], "width": 1.5},
        hoverinfo="skip",
    )
