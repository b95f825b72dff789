"""The time axis of the figures of a series: its dates, or t = 1 … T."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from components.series.maths.dates import to_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axis_times(dates: tuple[str, ...], start: int, stop: int) -> NDArray[Any]:
    """Positions on the axis of the times start + 1 … stop [stop − start].

    Dates give datetime64.
    """
    return to_axis(dates)[start:stop] if dates else np.arange(start + 1, stop + 1)


def label_times(axis: Axes, dates: tuple[str, ...], most: int = 9) -> None:
    """Set at most ``most`` ticks at dates, or ticks at whole numbers with the label t."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    axis.margins(x=0.01)
    if not dates or not np.issubdtype(to_axis(dates).dtype, np.datetime64):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlabel("t")
        return
    locator = AutoDateLocator(minticks=3, maxticks=most)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
