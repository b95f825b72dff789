"""The estimated hidden states of one replicate, above its observations."""

from __future__ import annotations

from components.contracts.posteriors import SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import RED, Figures, colour_of, legend_above, new_figure
from components.series.figures.bands import draw_band, draw_ticks, drawn_states
from components.series.figures.outliers import REPLICATE, mark
from components.series.figures.time_axis import axis_times, label_times


def states(problem: Trajectories, found: SmoothedStates) -> Figures:
    """Mean and 90 % band of every state dimension over time, with the truth if it is known, and the
    observations.

    A missing observation is a tick on the axis; a corrupted one has another colour."""
    times = found.mean.shape[1]
    t = axis_times(problem.dates, 0, times)
    label, (mean, lower, upper) = drawn_states(found)
    y = problem.observations[REPLICATE, :times].cpu()
    hit = problem.is_corrupted[REPLICATE, :times].cpu()
    missing = y.isnan().any(-1)
    dx = mean.shape[1]
    figure, axes = new_figure(dx + 1, 1, width=9.0, height=2.4, sharex=True)
    for j, (name, axis) in enumerate(zip(problem.state_labels, axes, strict=False)):
        draw_band(axis, t, (mean[:, j], lower[:, j], upper[:, j]), label, 90)
        if problem.states is not None:
            truth = problem.states[0 if len(problem.states) == 1 else REPLICATE, :times, j].cpu()
            axis.plot(t, truth, color="black", lw=0.9, ls="--", label="true state")
        axis.set_ylabel(name)
    mark(axes[:dx], problem, times)
    legend_above(axes[0])
    below = axes[dx]
    for j in range(y.shape[1]):
        below.plot(t, y[:, j], ".", ms=3, color=colour_of(3 * j))
        below.plot(
            t[hit.numpy()],
            y[hit, j],
            ".",
            ms=5,
            color=RED,
            label="corrupted" if j == 0 else None,
        )
    if missing.any():
        draw_ticks(below, t, missing)
        below.set_title(f"{int(missing.sum())} observations are missing (ticks)", fontsize=9)
    if hit.any():
        legend_above(below)
    below.set(ylabel="observed")
    label_times(below, problem.dates)
    return {"states": figure}
