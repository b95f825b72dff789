"""A measured series, its smoothed signal, and the truth (Boustati Figs 6.5
and D.20)."""

from __future__ import annotations

import torch

from components.contracts.posteriors import SmoothedSignal, SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import GREY, RED, Figures, legend_above, new_figure
from components.series.figures.bands import draw_band, drawn_states
from components.series.figures.outliers import REPLICATE
from components.series.figures.time_axis import axis_times, label_times

# limits of the vertical axis, in ranges of the inliers; outliers are marked at its edge
ROOM = 1.5


def signal(problem: Trajectories, found: SmoothedStates) -> Figures:
    """Mean of the signal and the 90 % band of new observations over time, the measurements, and the
    truth.

    Observations that an attacker changed, or that the dataset's own rule suspects, have another
    colour and are arrows beyond the axis.  For a filter, or if the observation noise is unknown,
    mean and band show the state."""
    label, (mean, lower, upper) = drawn_states(found)
    if isinstance(found, SmoothedSignal) and found.signal is not None:
        mean, lower, upper = (v[REPLICATE].cpu() for v in found.signal)
    mean, lower, upper = (v[:, 0] for v in (mean, lower, upper))
    t = axis_times(problem.dates, 0, len(mean))
    y = problem.observations[REPLICATE, : len(t), 0].cpu()
    truth = None if problem.means is None else problem.means[0, : len(t), 0].cpu()
    figure, (axis,) = new_figure(1, 1, width=9.0, height=2.8)
    draw_band(axis, t, (mean, lower, upper), label, 90)
    is_outlier = problem.is_corrupted[REPLICATE, : len(t)].cpu()
    if problem.suspect is not None:
        is_outlier = is_outlier | problem.suspect[: len(t)].cpu()
    if truth is not None:
        axis.plot(t, truth, color="black", lw=1.0, ls="--", label="truth")
    axis.plot(t[~is_outlier.numpy()], y[~is_outlier], ".", ms=4, color=GREY, label="measurements")
    near = torch.cat([y[~is_outlier], *([] if truth is None else [truth])])
    near = near[~near.isnan()] if (~near.isnan()).any() else mean
    middle = float(near.min() + near.max()) / 2
    half = ROOM * float(near.max() - near.min()) / 2
    bottom = middle - half
    top = middle + half
    beyond_axis = bool((is_outlier & ((y > top) | (y < bottom))).any())
    axis.plot(
        t[is_outlier.numpy()],
        y[is_outlier].clamp(bottom, top),
        ".",
        ms=5,
        color=RED,
        label="outliers (triangle: beyond the axis)" if beyond_axis else "outliers",
    )
    for edge, beyond, mark in (
        (top, is_outlier & (y > top), "^"),
        (bottom, is_outlier & (y < bottom), "v"),
    ):
        axis.plot(
            t[beyond.numpy()],
            [edge] * int(beyond.sum()),
            mark,
            ms=6,
            color=RED,
            clip_on=not beyond.any(),  # an empty line that is not clipped widens the margins
        )
    axis.set(ylabel=problem.state_names[0], ylim=(bottom, top))
    label_times(axis, problem.dates)
    legend_above(axis)
    return {"signal": figure}
