"""A figure of a report, drawn for paper and for pages that run no scripts, and its sources."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.report.figures.charts import to_chart
from runner.report.figures.traces import Chart
from runner.report.run_views import RunView
from runner.report.scores.cells import TableLayout
from runner.study.definition import StudyDefinition

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOKE = "smoke run"  # watermark of a figure that uses any smoke run


@dataclass(frozen=True)
class FigureSource:
    """Tables and records that a figure is drawn from, and the rows that it shows."""

    study: StudyDefinition
    runs: list[RunView]
    tables: list[TableLayout]
    names: dict[str, str]  # label of each row
    preset: str  # settings of all rows; empty: they differ

    @property
    def settings(self) -> str:
        """The settings of all rows, for a caption."""
        return f", {self.preset}" if self.preset else ""

    @property
    def data(self) -> str:
        """Names of the data behind all tables."""
        return ", ".join(dict.fromkeys(name for laid in self.tables for name in laid.data))


class Picture(NamedTuple):
    """A figure with its caption; pages draw an interactive one again in the browser."""

    figure: Figure
    caption: str
    is_interactive: bool = True

    @property
    def chart(self) -> Chart:
        """Data and layout for plotly.js; empty: there is no interactive form."""
        return to_chart(self.figure) if self.is_interactive else {}

    def render(self, form: str = "png", dpi: int = 150) -> bytes:
        """Content of a file of it."""
        from components.figures.labels import readable

        buffer = io.BytesIO()
        readable(self.figure).savefig(buffer, format=form, dpi=dpi, bbox_inches="tight")
        return buffer.getvalue()


def mark_smoke(figure: Figure) -> Figure:
    """The figure with ``SMOKE`` across it, pale, so that no slide that shows it can be taken for a
    result."""
    style: dict[str, Any] = {
        "fontsize": 32,
        "color": "#b2182b",
        "alpha": 0.25,
        "rotation": 20,
        "zorder": 10,
    }
    figure.text(0.5, 0.5, SMOKE, ha="center", va="center", **style)
    return figure
