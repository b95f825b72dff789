"""Columns of the progress line of a run: rich's own, and metrics in the remaining width."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

BAR_WIDTH = 10


class RateColumn(ProgressColumn):
    """Steps per second, or seconds per step if a step takes more than a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.0f}/s" if speed >= 1 else f"{1 / speed:.1f} s each")


class MetricsColumn(ProgressColumn):
    """Metrics of the last recorded step, truncated at the end of the line."""

    def get_table_column(self) -> Column:
        return Column(no_wrap=False)  # the only column that may shrink

    def render(self, task: Task) -> Text:
        # without blanks the column may shrink to any width
        text = task.fields["metrics"].replace(" ", "\N{NO-BREAK SPACE}")
        return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def columns(width: int) -> list[ProgressColumn]:
    """Columns of the progress line for the width of a terminal."""
    name = Column(no_wrap=True, overflow="ellipsis", max_width=width // 4)
    return [
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(BAR_WIDTH),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        MetricsColumn(),
    ]
