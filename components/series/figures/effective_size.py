"""Effective sample size over time, with the largest outliers.

As in Boustati Figs 6.3, D.12 and D.19.
"""

from __future__ import annotations

from components.contracts.posteriors import SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import BLUE, ORANGE, Figures, legend_above, new_figure
from components.series.figures.outliers import REPLICATE, mark
from components.series.figures.time_axis import axis_times, label_times
from components.series.posteriors.summaries import StateSummaries


def effective_size(problem: Trajectories, found: SmoothedStates) -> Figures:
    """Effective sample size of one replicate's particles, and the median of all replicates.

    Nothing is drawn for a posterior without weighted particles.
    """
    if not isinstance(found, StateSummaries) or found.ess is None:
        return {}
    ess = found.ess.double().cpu()  # [R, T]
    t = axis_times(problem.dates, 0, ess.shape[1])
    figure, (ax,) = new_figure(1, 1, width=9.0, height=2.8)
    ax.plot(
        t,
        ess[REPLICATE],
        color=BLUE,
        lw=0.9,
        label=f"replicate 1 of {len(ess)}" if len(ess) > 1 else "ESS",
    )
    if len(ess) > 1:
        ax.plot(
            t,
            ess.quantile(0.5, dim=0),
            color=ORANGE,
            lw=1.2,
            label=f"median of {len(ess)} replicates",
        )
    mark([ax], problem, ess.shape[1])
    ax.set(ylabel="effective sample size")
    label_times(ax, problem.dates)
    ax.set_ylim(bottom=0)
    legend_above(ax)
    return {"effective_size": figure}
