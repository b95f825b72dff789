"""A filtered trajectory with the true one, for one replicate (Boustati Figs D.2 to D.5)."""

from __future__ import annotations

import torch

from components.contracts.posteriors import FilteredStates, SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import BLUE, RED, SKY, Figure, legend_below, new_figure
from components.series.figures.outliers import REPLICATE, mark
from components.series.figures.time_axis import axis_times, label_times


def trajectory(problem: Trajectories, found: SmoothedStates) -> dict[str, Figure]:
    """Error x̂_t − x_t and 90 % band of every state dimension.

    Ticks below mark the corrupted observations.  Errors are drawn instead of states,
    because the range of states is thousands of times the width of the bands.  Nothing is
    drawn where the true states are not known.
    """
    if problem.states is None:
        return {}
    times = found.mean.shape[1]
    kind = "filtered" if isinstance(found, FilteredStates) else "smoothed"
    t = axis_times(problem.dates, 0, times)
    truth = problem.states[0 if len(problem.states) == 1 else REPLICATE, :times].cpu()
    mean, lower, upper = (v[REPLICATE].cpu() for v in (found.mean, found.lower, found.upper))
    hit = problem.is_corrupted[REPLICATE, :times].cpu()

    labels = problem.state_labels
    n_states = len(labels)
    rows = (n_states + 1) // 2
    figure, axes = new_figure(rows, 2, width=5.2, height=2.5, sharex=True)
    for j, (name, axis) in enumerate(zip(labels, axes, strict=False)):
        error = mean[:, j] - truth[:, j]
        low = lower[:, j] - truth[:, j]
        high = upper[:, j] - truth[:, j]
        axis.fill_between(t, low, high, color=SKY, alpha=0.5, lw=0, label="90 % band")
        axis.plot(t, error, color=BLUE, lw=1, label=f"{kind} mean")
        axis.axhline(0, color="black", lw=0.8, ls="--", label="true state")
        if hit.any():
            # Ticks in axes units below, so that outliers of any size do not change the scale.
            axis.plot(
                t[hit.numpy()],
                torch.full((int(hit.sum()),), 0.02),
                "|",
                ms=8,
                mew=1.5,
                color=RED,
                alpha=0.7,
                transform=axis.get_xaxis_transform(),
                label="corrupted observation",
            )
        axis.set(title=name, ylabel="estimate − truth")
    for axis in axes[n_states:]:
        axis.set_axis_off()
    mark(axes[:n_states], problem, times)
    for axis in axes[-2:]:
        label_times(axis, problem.dates)
    legend_below(figure, axes[:1], fontsize=9)
    return {"trajectory": figure}
