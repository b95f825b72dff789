"""A figure of a report: drawn for paper and for pages that run no scripts, and as the values that a
browser draws it from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOKE = "smoke run"  # watermark of a figure that uses any smoke run


class Picture(NamedTuple):
    """``chart`` is what plotly.js takes, data and layout; empty: there is no interactive form."""

    figure: Figure
    caption: str
    chart: dict[str, Any]


def mark_smoke(figure: Figure) -> Figure:
    """The figure with ``SMOKE`` across it, pale, so that no slide that shows it can be taken for a
    result."""
    figure.text(
        0.5,
        0.5,
        SMOKE,
        fontsize=32,
        color="#b2182b",
        alpha=0.25,
        rotation=20,
        ha="center",
        va="center",
        zorder=10,
    )
    return figure


def marked_chart(chart: dict[str, Any]) -> dict[str, Any]:
    """The same across a chart."""
    if not chart:
        return chart
    font = {"size": 32, "color": "rgba(178, 24, 43, 0.25)"}
    mark = {
        "text": SMOKE,
        "xref": "paper",
        "yref": "paper",
        "x": 0.5,
        "y": 0.5,
        "showarrow": False,
        "font": font,
    }
    return chart | {"layout": chart["layout"] | {"annotations": [mark]}}
