"""Decomposition of a series into the contributions of its blocks."""

from __future__ import annotations

import torch

from components.contracts.posteriors import StructuralPosterior
from components.figures.style import BLUE, GREY, PALETTE, Figures, legend_below, new_figure
from components.series.figures.bands import draw_band
from components.series.figures.time_axis import axis_times, label_times

MOST = 7  # columns drawn of a block


def components(posterior: StructuralPosterior) -> Figures:
    """The series with the sum of its parts, and below it a panel with mean and 95 % band per
    part, with a line for each of its ``MOST`` most variable columns."""
    parts = posterior.components
    if not parts:
        return {}
    y = posterior.series.y[0, :, 0].cpu()
    dates = posterior.series.dates
    t = axis_times(dates, 0, len(y))
    figure, axes = new_figure(1 + len(parts), 1, width=9.0, height=1.7, sharex=True)
    total = torch.stack([part.mean.cpu() for part in parts]).sum(0)
    axes[0].plot(t, y, ".", ms=3, color=GREY, label="observed")
    axes[0].plot(t, total, color=BLUE, lw=1.2, label="sum of the parts")
    axes[0].set_ylabel("series")
    for axis, part in zip(axes[1:], parts, strict=True):
        draw_band(axis, t, (part.mean, part.lower, part.upper))
        axis.set_ylabel(part.name)
        names = sorted(part.columns, key=lambda name: -float(part.columns[name].std()))[:MOST]
        if len(names) > 1:
            axis.set_prop_cycle(color=PALETTE[1:])
            lines = [axis.plot(t, part.columns[name].cpu(), lw=1.0)[0] for name in names]
            look = {"fontsize": 8, "frameon": False}
            axis.legend(lines, names, loc="center left", bbox_to_anchor=(1.0, 0.5), **look)
    legend_below(figure, axes[:2])
    label_times(axes[-1], dates)
    return {"components": figure}
