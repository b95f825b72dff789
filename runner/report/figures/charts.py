"""Figures of a report as plotly.js draws them: hover shows the numbers, the legend switches lines
on and off.

Each has the table, the colours and the order of the figure of the same name in
``components.figures``.  Panels stand below each other, so that a chart can be as narrow as a
telephone.  What is returned is plain values, written as JSON."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from components.figures.style import LINES, PALETTE, series_style

if TYPE_CHECKING:
    import pandas as pd

Chart = dict[str, Any]
DASHES = dict(zip(LINES, ("solid", "dash", "dot", "dashdot"), strict=True))
SYMBOLS = ["circle", "square", "diamond", "triangle-down", "star", "triangle-up", "cross", "x"]
PANEL_HEIGHT_PIXELS = 260
LEGEND_LINE_PIXELS = 20
EDGE = 90  # pixels: height of a panel, of a line of the legend, of the margin
MOST_POINTS = 20_000  # of a panel: longer lines are thinned, first and last points kept
FEWEST = 20
LONGEST = 300  # points of a line that is thinned


def plain(text: str) -> str:
    """Text as plotly shows it.

    Mathematics between dollar signs becomes the letters it denotes; mark-up is escaped.
    """

    def letters(found: re.Match[str]) -> str:
        def letter(name: re.Match[str]) -> str:
            try:
                return unicodedata.lookup(f"GREEK SMALL LETTER {name.group(1)}")
            except KeyError:
                return name.group(1)

        return re.sub(r"\\([A-Za-z]+)", letter, found.group(1)).replace("{", "").replace("}", "")

    return re.sub(r"\$([^$]*)\$", letters, text).replace("&", "&amp;").replace("<", "&lt;")


def numbers(values: Iterable[float]) -> list[float | None]:
    """Six digits of each, which no screen tells from more; what is not finite is a gap."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def make_layout(panels: list[str], label: str, n_names: int, **more: Any) -> Chart:
    """Layout of panels below each other, with one legend under them."""
    height = PANEL_HEIGHT_PIXELS * len(panels) + EDGE + LEGEND_LINE_PIXELS * n_names
    layout: Chart = {
        "grid": {"rows": len(panels), "columns": 1, "pattern": "independent", "ygap": 0.25},
        "height": height,
        "margin": {"l": 60, "r": 15, "t": 15, "b": 50},
        "legend": {
            "orientation": "h",
            "yanchor": "top",
            "y": -70 / (PANEL_HEIGHT_PIXELS * len(panels)),
            "x": 0,
        },
        "hovermode": "closest",
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "font": {"size": 12},
    } | more
    for i, title in enumerate(panels):
        axis = {"gridcolor": "#e6e6e6", "zeroline": False, "automargin": True}
        layout[f"xaxis{_axis_number(i)}"] = axis | {"title": {"text": plain(label)}}
        layout[f"yaxis{_axis_number(i)}"] = axis | {"title": {"text": plain(title)}}
    return layout


def _axis_number(i: int) -> str:
    return str(i + 1) if i else ""


def axis_references(i: int, name: str, first: bool) -> Chart:
    """Axes of a trace, and the legend name that switches it."""
    axis = _axis_number(i)
    return {
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "name": plain(name),
        "legendgroup": name,
        "showlegend": first,
    }


def line_trace(references: Chart, x: Iterable[float], y: Iterable[float], **more: Any) -> Chart:
    """A line on its axes."""
    return (
        references | {"type": "scatter", "mode": "lines", "x": numbers(x), "y": numbers(y)} | more
    )


def is_new(data: list[Chart], name: str) -> bool:
    """True if no trace has the name yet: the first one is shown in the legend."""
    return all(trace["legendgroup"] != name for trace in data)


def band_traces(
    references: Chart,
    x: Iterable[float],
    means: Iterable[float],
    edges: tuple[Iterable[float], Iterable[float]],
    k: int,
) -> tuple[Chart, Chart]:
    """The central 90 % of replicates, and their mean in the style of the k-th series."""
    look = series_style(k)
    low, high = map(numbers, edges)
    mean = line_trace(
        references,
        x,
        means,
        line={"color": look["color"], "dash": DASHES[look["ls"]], "width": 2},
        customdata=list(zip(low, high, strict=True)),
        hovertemplate="%{x}: %{y} (90 % from %{customdata[0]} to %{customdata[1]})",
    )
    band = references | {
        "type": "scatter",
        "mode": "lines",
        "x": mean["x"] + mean["x"][::-1],
        "y": high + low[::-1],
        "line": {"width": 0},
        "opacity": 0.2,
        "fill": "toself",
        "fillcolor": look["color"],
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return band, mean


def curve_chart(
    table: pd.DataFrame, label: str, words: Mapping[str, str], logarithmic: bool = True
) -> Chart:
    """``learning_curve``: columns model, n_train, mean, se, metric, of each point n and, for the
    table of some figures, floor."""
    metrics, models = (list(dict.fromkeys(table[c])) for c in ("metric", "model"))
    data: list[Chart] = []
    for i, metric in enumerate(metrics):
        for k, model in enumerate(models):
            points = table[(table["metric"] == metric) & (table["model"] == model)].sort_values(
                "n_train"
            )
            if points.empty:
                continue
            dash = "solid" if k // len(PALETTE) % 2 == 0 else "dash"
            colour = PALETTE[k % len(PALETTE)]
            data.append(
                line_trace(
                    axis_references(i, model, is_new(data, model)),
                    points["n_train"],
                    points["mean"],
                    mode="lines+markers",
                    error_y={
                        "type": "data",
                        "array": [float(f"{v:.2g}") for v in points["se"].fillna(0.0)],
                        "thickness": 1,
                    },
                    line={"color": colour, "dash": dash},
                    marker={"color": colour, "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 7},
                    customdata=[int(n) for n in points["n"]],
                    hovertemplate="%{x}: %{y} (SE; n %{customdata})",
                )
            )
            if "floor" in points:
                data.append(
                    line_trace(
                        axis_references(i, model, False),
                        points["n_train"],
                        points["floor"],
                        line={"color": colour, "dash": "dash", "width": 1},
                        hovertemplate="%{x}: not below %{y}",
                    )
                )
    layout = make_layout([words[m] for m in metrics], label, len(models))
    sizes = sorted(set(table["n_train"]))
    if logarithmic and sizes[0] > 0:
        for key in [key for key in layout if key.startswith("xaxis")]:
            layout[key] |= {
                "type": "log",
                "tickvals": numbers(sizes),
                "ticktext": [f"{size:g}" for size in sizes],
            }
    return {"data": data, "layout": layout}


def evolution_chart(
    table: pd.DataFrame,
    exact: Mapping[str, float],
    label: str,
    band: bool,
    words: Mapping[str, str],
    known: str,
) -> Chart:
    """``evolution``: columns method, replicate, step, metric, value; a method's replicates are
    switched together."""
    from components.figures.samples.evolution import format_axis_label, replicate_band

    metrics, methods = (list(dict.fromkeys(table[c])) for c in ("metric", "method"))
    each = int(MOST_POINTS / max(1, table.groupby(["method", "replicate"]).ngroups))
    most = min(LONGEST, max(FEWEST, each))
    data: list[Chart] = []
    for i, metric in enumerate(metrics):
        rows = table[table["metric"] == metric]
        for k, method in enumerate(methods):
            method_rows = rows[rows["method"] == method]
            if method_rows.empty:
                continue
            references = axis_references(i, method, is_new(data, method))
            if band:
                mean, *edges = (s.iloc[_thin(len(s), LONGEST)] for s in replicate_band(method_rows))
                area, line = band_traces(references, mean.index, mean, (edges[0], edges[1]), k)
                data.insert(0, area)  # before every line, which it would cover
                data.append(line)
                continue
            look = series_style(k)
            x = []
            y = []
            text = []
            for replicate, values in method_rows.groupby("replicate", sort=False):
                points = values.iloc[_thin(len(values), most)]
                x += [*numbers(points["step"]), None]
                y += [*numbers(points["value"]), None]
                text += [str(replicate)] * (len(points) + 1)
            style = {"color": look["color"], "dash": DASHES[look["ls"]], "width": 1.2}
            hover = "replicate %{text}, %{x}: %{y}"
            data.append(
                references
                | {"type": "scatter", "mode": "lines", "x": x, "y": y, "text": text, "line": style}
                | {"hovertemplate": hover}
            )
        if metric in exact:
            data.append(
                line_trace(
                    axis_references(i, known, is_new(data, known)),
                    [rows["step"].min(), rows["step"].max()],
                    [exact[metric]] * 2,
                    line={"color": PALETTE[6], "width": 2},
                )
            )
    return {
        "data": data,
        "layout": make_layout(
            [format_axis_label(m, words) for m in metrics], label, len(methods) + bool(exact)
        ),
    }


def _thin(n: int, most: int) -> list[int]:
    """Indices of at most ``most`` of n points, evenly apart, the first and the last among them."""
    return list(range(n)) if n <= most else [round(i * (n - 1) / (most - 1)) for i in range(most)]


def spread_chart(
    table: pd.DataFrame,
    kind: str,
    levels: Mapping[str, float],
    label: str,
    words: Mapping[str, str],
) -> Chart:
    """``spread``: columns method, group, metric, value."""
    from components.series.figures.spread import logarithmic

    metrics, methods, groups = (
        list(dict.fromkeys(table[c])) for c in ("metric", "method", "group")
    )
    grouped = len(groups) > 1
    data: list[Chart] = []
    layout = make_layout(
        [words.get(m, m) for m in metrics],
        label if grouped else "",
        len(methods) if grouped else 0,
        **{f"{kind}mode": "group" if grouped else "overlay"},
    )
    for i, metric in enumerate(metrics):
        rows = table[table["metric"] == metric]
        axis = layout[f"yaxis{_axis_number(i)}"]
        if logarithmic(rows["value"].to_numpy(float), metric in levels):
            axis["type"] = "log"
        for k, method in enumerate(methods):
            method_rows = rows[rows["method"] == method]
            group_names = method_rows["group"]
            trace: Chart = {
                "type": kind,
                "x": [*map(str, group_names)] if grouped else [plain(method)] * len(group_names),
                "y": numbers(method_rows["value"]),
                "line": {"color": PALETTE[k % len(PALETTE) if grouped else 0], "width": 1},
            }
            if kind == "violin":  # the quartiles inside, no tails
                trace |= {"box": {"visible": True}, "points": False, "spanmode": "hard"}
            data.append(axis_references(i, method, grouped and i == 0) | trace)
        if metric in levels:
            layout.setdefault("shapes", []).append(_level_line(_axis_number(i), levels[metric]))
    return {"data": data, "layout": layout}


def _level_line(axis: str, level: float) -> Chart:
    """A dashed line across a panel at a level."""
    return {
        "type": "line",
        "xref": f"x{axis} domain",
        "x0": 0,
        "x1": 1,
        "yref": f"y{axis}",
        "y0": level,
        "y1": level,
        "line": {"dash": "dash", "width": 1},
    }
