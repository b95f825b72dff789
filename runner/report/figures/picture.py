"""A figure of a report for print and for pages without scripts, and its sources."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from runner.report.figures.charts import to_chart
from runner.report.figures.traces import Chart
from runner.report.run_views import RunView
from runner.report.scores.cells import TableLayout
from runner.study.definition import StudyDefinition

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOKE = "smoke run"  # watermark of figures with smoke runs


@dataclass(frozen=True)
class FigureSource:
    """Tables, records and rows of a figure."""

    study: StudyDefinition
    runs: list[RunView]
    tables: list[TableLayout]
    names: dict[str, str]  # label of each row
    preset: str  # settings of all rows; empty if they differ

    @property
    def settings(self) -> str:
        """Settings of all rows, for a caption."""
        return f", {self.preset}" if self.preset else ""

    @property
    def data(self) -> str:
        """Names of the data behind all tables."""
        return ", ".join(dict.fromkeys(name for laid in self.tables for name in laid.data))


class Picture(NamedTuple):
    """A figure with its caption; pages draw interactive figures in the browser."""

    figure: Figure
    caption: str
    is_interactive: bool = True

    @property
    def chart(self) -> Chart:
        """Data and layout for plotly.js; empty without an interactive form."""
        return to_chart(self.figure) if self.is_interactive else {}

    def render(self, form: str = "png", dpi: int = 150) -> bytes:
        """Content of a picture file."""
        from components.figures.labels import readable

        buffer = io.BytesIO()
        readable(self.figure).savefig(buffer, format=form, dpi=dpi, bbox_inches="tight")
        return buffer.getvalue()


def mark_smoke(figure: Figure) -> Figure:
    """Add the pale watermark ``SMOKE`` to a figure, so that it is not mistaken for a result."""
    text = figure.text(0.5, 0.5, SMOKE, ha="center", va="center", fontsize=32, rotation=20)
    text.set(color="#b2182b", alpha=0.25, zorder=10)
    return figure
