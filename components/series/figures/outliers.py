"""Dashed vertical lines at the largest outliers of the drawn replicate.

As in Boustati Figs 6.3 and D.6 to D.19.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.contracts.sequences import Trajectories
from components.series.figures.time_axis import axis_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPLICATE = 0  # the replicate drawn
MOST = 8  # outliers marked


def mark(axes: list[Axes], problem: Trajectories, times: int) -> None:
    """Mark the largest outliers among the first T times.

    Outliers are the observations farthest from the values that the states predict.
    """
    places = axis_times(problem.dates, 0, times)
    for i, t in enumerate(problem.outliers(REPLICATE, times, MOST)):
        for ax in axes:
            ax.axvline(
                places[t - 1],
                color="black",
                ls=(0, (3, 3)),
                lw=0.8,
                alpha=0.6,
                label="largest outliers" if i == 0 else None,
            )
