"""The cost figure as plotly.js draws it: curves, and below them final scores with their front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from components.figures.style import PALETTE, series_style
from runner.report.figures.charts import (
    DASHES,
    SYMBOLS,
    Chart,
    axis_references,
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
            is_first = not any(trace["legendgroup"] == method for trace in data)
            data += _curve(2 * i, method, line, k, is_first)
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


def _curve(axis: int, method: str, line: pd.DataFrame, k: int, is_first: bool) -> list[Chart]:
    """A band below its mean."""
    look = series_style(k)
    x = numbers(line["cost"])
    low = numbers(line["low"])
    high = numbers(line["high"])
    band: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": x + x[::-1],
        "y": high + low[::-1],
        "line": {"width": 0},
        "opacity": 0.2,
        "fill": "toself",
        "fillcolor": look["color"],
        "hoverinfo": "skip",
    }
    mean: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if len(x) == 1 else "lines",
        "x": x,
        "y": numbers(line["mean"]),
        "line": {"color": look["color"], "dash": DASHES[look["ls"]], "width": 2},
        "customdata": list(zip(low, high, strict=True)),
        "hovertemplate": "%{x}: %{y} (90 % from %{customdata[0]} to %{customdata[1]})",
    }
    references = axis_references(axis, method, is_first)
    return [axis_references(axis, method, False) | band, references | mean]


def _final(axis: int, method: str, final: pd.DataFrame, k: int) -> Chart:
    """Final score and total cost of a method; an open sign is not on the front."""
    colour = series_style(k)["color"]
    symbol = SYMBOLS[k % len(SYMBOLS)]
    is_open = not bool(final["front"].all())
    return axis_references(axis, method, False) | {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(final["cost"]),
        "y": numbers(final["mean"]),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": numbers(final["high"] - final["mean"]),
            "arrayminus": numbers(final["mean"] - final["low"]),
            "thickness": 1,
        },
        "marker": {"color": colour, "size": 10, "symbol": f"{symbol}-open" if is_open else symbol},
        "hovertemplate": "%{x}: %{y}",
    }


def _front(axis: int, front: pd.DataFrame, is_first: bool) -> Chart:
    return axis_references(axis, "Pareto front", is_first) | {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(front["cost"]),
        "y": numbers(front["mean"]),
        "line": {"color": PALETTE[7], "width": 1.5},
        "hoverinfo": "skip",
    }
