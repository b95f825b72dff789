"""Interactive figures of a report for plotly.js: hovering shows numbers, the legend toggles lines.

A chart is converted from the Matplotlib figure.  Panels are stacked, so that a chart fits on a
telephone; small multiples become one panel.  The result consists of plain values, written as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from components.figures.multiples import BACKGROUND_LINE_STYLE
from components.figures.style import Axes, Figure, series_style
from runner.report.figures.traces import DASHES, Chart, list_traces, numbers, plain

if TYPE_CHECKING:
    from matplotlib.axis import Axis

PANEL_HEIGHT_PIXELS = 260
LEGEND_LINE_PIXELS = 20
EDGE = 90  # pixels: height of a panel, of a line of the legend, of the margin


def to_chart(figure: Figure) -> Chart:
    """Data and layout of a figure's lines, bands, error bars, violins, boxes and levels."""
    panels = _list_panels(figure)
    data: list[Chart] = []
    names = {""}
    for i, panel in enumerate(panels):
        axes = {"xaxis": f"x{_number(i)}", "yaxis": f"y{_number(i)}"}
        for k, ax in enumerate(panel):
            for trace in list_traces(ax):
                if len(panel) > 1 and not _take_style(trace, ax, k):
                    continue
                if "error_y" in trace and ax.get_xscale() == "log":
                    ticks = _fixed_ticks(ax.xaxis)
                    trace["x"] = [_undo_offset(x, ticks) for x in trace["x"]]
                name = trace["name"]
                shown = {"legendgroup": name, "showlegend": name not in names}
                data.append(trace | axes | shown | {"name": plain(name)})
                names.add(name)
    return {"data": data, "layout": _make_layout(figure, panels, len(names) - 1)}


def _undo_offset(x: float, ticks: Sequence[float]) -> float:
    """Move a value to the tick within 7 % of it: ``learning_curve`` separates error bars at the same
    tick by up to 6.5 %.
    """
    nearest = min(ticks, key=lambda tick: abs(tick - x), default=x)
    return nearest if abs(nearest - x) < 0.07 * nearest else x


def _number(i: int) -> str:
    return str(i + 1) if i else ""


def _list_panels(figure: Figure) -> list[list[Axes]]:
    """Axes with data; titled axes with the same label (small multiples) form one panel."""
    panels: list[list[Axes]] = []
    for ax in figure.axes:
        if not ax.axison or not ax.has_data():
            continue
        first = panels[-1][0] if panels else ax
        is_multiple = ax is not first and ax.get_title() and first.get_title()
        if is_multiple and ax.get_ylabel() in ("", first.get_ylabel()):
            panels[-1].append(ax)
        else:
            panels.append([ax])
    return panels


def _take_style(trace: Chart, ax: Axes, k: int) -> bool:
    """Set the name and style of a trace in the k-th small multiple; return False for a repeated
    trace.
    """
    if trace["line"]["color"] == BACKGROUND_LINE_STYLE["color"] or (k and trace["name"]):
        return False
    if not trace["name"]:
        style = series_style(k)
        trace["name"] = ax.get_title()
        trace["line"] |= {"color": style["color"], "dash": DASHES[style["ls"]]}
        trace["marker"] = trace.get("marker", {}) | {"color": style["color"]}
        trace |= {"fillcolor": style["color"]} if "fill" in trace else {}
    return True


def _make_layout(figure: Figure, panels: list[list[Axes]], n_names: int) -> Chart:
    """Layout of stacked panels with a legend below."""
    height = PANEL_HEIGHT_PIXELS * len(panels)
    words = [text for text in figure.texts if text.get_text() != figure.get_supxlabel()]
    layout: Chart = {
        "grid": {"rows": len(panels), "columns": 1, "pattern": "independent", "ygap": 0.25},
        "height": height + EDGE + LEGEND_LINE_PIXELS * n_names,
        "margin": {"l": 60, "r": 15, "t": 15, "b": 50},
        "legend": {"orientation": "h", "yanchor": "top", "y": -70 / max(height, 1), "x": 0},
        "hovermode": "closest",
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "font": {"size": 12},
        "annotations": [_annotate(text) for text in words],
    }
    labels = [panel[-1].get_xlabel() for panel in panels]
    common = figure.get_supxlabel() or next(filter(None, labels[::-1]), "")
    title = ""
    for i, (ax, *_) in enumerate(panels):
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            title = ax.get_title(loc="left")
        lines = [plain(line) for line in (title, ax.get_ylabel()) if line]
        layout[f"xaxis{_number(i)}"] = _make_axis(ax.xaxis, plain(ax.get_xlabel() or common))
        layout[f"yaxis{_number(i)}"] = _make_axis(ax.yaxis, "<br>".join(lines))
    return layout


def _fixed_ticks(axis: Axis) -> list[float]:
    """Ticks that a figure has set; empty if the axis chooses them."""
    from matplotlib.ticker import FixedLocator

    locator = axis.get_major_locator()
    return list(map(float, locator())) if isinstance(locator, FixedLocator) else []


def _make_axis(axis: Axis, title: str) -> Chart:
    """Title, scale and ticks of an axis."""
    settings: Chart = {"gridcolor": "#e6e6e6", "zeroline": False, "automargin": True}
    settings |= {"title": {"text": title, "font": {"size": 11}}, "type": axis.get_scale()}
    if ticks := _fixed_ticks(axis):
        texts = axis.get_major_formatter().format_ticks(ticks)
        settings |= {"tickvals": numbers(ticks), "ticktext": [plain(text) for text in texts]}
    return settings


def _annotate(text: Any) -> Chart:
    """Annotation across the figure."""
    x, y = text.get_position()
    font = {"size": text.get_fontsize(), "color": text.get_color()}
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False}
    return {"text": text.get_text(), "opacity": text.get_alpha() or 1.0, "font": font} | place
