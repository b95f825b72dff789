"""Columns of the live line of a run.

Step, total, rate and remaining time are never cut. Metrics fill what is left of the line: the
first one stays longest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

GAP = "  "
FIXED_WIDTH = 80  # columns that a line needs without the bar and most metrics
BAR_WIDTHS = (10, 30)  # the narrowest and the widest bar
WIDE_TERMINAL = 100  # columns from which the elapsed time is shown too


def format_seconds(seconds: float) -> str:
    """Hours, minutes and seconds, as ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def format_rate(rate: float) -> str:
    """Steps a second, or seconds a step where that is more than one."""
    return f"{rate:.0f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"


def fit(texts: Sequence[str], width: int) -> str:
    """As many of the texts as fit into a width, the first ones first."""
    line = ""
    for text in texts:
        longer = f"{line}{GAP}{text}" if line else text
        if cell_len(longer) > width:
            break
        line = longer
    return line


@dataclass(frozen=True)
class FittedTexts:
    """Texts of which only those that fit into the line are shown."""

    texts: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(fit(self.texts, options.max_width), style="dim", no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, cell_len(GAP.join(self.texts))))


class MetricsColumn(ProgressColumn):
    """The metrics of the last recorded step."""

    max_refresh = None

    def get_table_column(self) -> Column:
        return Column(no_wrap=False)  # the only column that the table may narrow

    def render(self, task: Task) -> FittedTexts:
        return FittedTexts(task.fields["metrics"])


class RemainingColumn(ProgressColumn):
    """Time until the last step, counted down between steps."""

    def render(self, task: Task) -> Text:
        until = task.fields["until"]
        if until is None:
            return Text("")
        return Text(f"{format_seconds(max(0.0, until - time.monotonic()))} left", style="cyan")


def columns(width: int) -> list[ProgressColumn]:
    """Columns of the live line on a terminal of so many columns."""
    narrowest, widest = BAR_WIDTHS
    name = Column(no_wrap=True, overflow="ellipsis", max_width=width // 4)
    return [
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=max(narrowest, min(widest, width - FIXED_WIDTH))),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False, table_column=Column(no_wrap=True)),
        *([TimeElapsedColumn()] if width >= WIDE_TERMINAL else []),
        RemainingColumn(),
        MetricsColumn(),
    ]
