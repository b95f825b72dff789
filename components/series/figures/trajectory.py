"""A filtered trajectory with the true one, for one replicate (Boustati Figs D.2 to D.5)."""

from __future__ import annotations

from components.contracts.posteriors import SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import Figures, legend_below, new_figure
from components.series.figures.bands import draw_band, draw_ticks, drawn_states
from components.series.figures.outliers import REPLICATE, mark
from components.series.figures.time_axis import axis_times, label_times


def trajectory(problem: Trajectories, found: SmoothedStates) -> Figures:
    """Error x̂_t − x_t and 90 % band of every state dimension.

    Ticks below mark the corrupted observations.  Errors are drawn instead of states,
    because the range of states is thousands of times the width of the bands.  Nothing is drawn if
    the true states are unknown.
    """
    if problem.states is None:
        return {}
    times = found.mean.shape[1]
    t = axis_times(problem.dates, 0, times)
    truth = problem.states[0 if len(problem.states) == 1 else REPLICATE, :times].cpu()
    label, (mean, lower, upper) = drawn_states(found)
    hit = problem.is_corrupted[REPLICATE, :times].cpu()

    labels = problem.state_labels
    n_states = len(labels)
    rows = (n_states + 1) // 2
    figure, axes = new_figure(rows, 2, width=5.2, height=2.5, sharex=True)
    for j, (name, axis) in enumerate(zip(labels, axes, strict=False)):
        x = truth[:, j]
        draw_band(axis, t, (mean[:, j] - x, lower[:, j] - x, upper[:, j] - x), label, 90)
        axis.axhline(0, color="black", lw=0.8, ls="--", label="true state")
        if hit.any():
            draw_ticks(axis, t, hit, "corrupted observation")
        axis.set(title=name, ylabel="estimate − truth")
    for axis in axes[n_states:]:
        axis.set_axis_off()
    mark(axes[:n_states], problem, times)
    for axis in axes[-2:]:
        label_times(axis, problem.dates)
    legend_below(figure, axes[:1], fontsize=9)
    return {"trajectory": figure}
