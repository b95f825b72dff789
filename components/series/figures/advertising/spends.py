"""Spends on each channel, in time and by year (Gallego Figs 1.2 and 1.6)."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from components.figures.style import Figures, colour_of, legend_below, new_figure
from components.series.figures.time_axis import axis_times, label_times


def spends(inputs: Tensor, names: list[str], dates: tuple[str, ...]) -> Figures:
    """Inputs [n, c], one panel with its own scale per channel, and their totals by calendar year if
    the dates of the n times span several years."""
    u = inputs.cpu().double().numpy()
    n, c = u.shape
    times = axis_times(dates, 0, n)
    figure, axes = new_figure(c, 1, width=9.0, height=1.3, sharex=True)
    for j, axis in enumerate(axes):
        axis.plot(times, u[:, j], color=colour_of(j), lw=1.0)
        axis.set_ylabel(names[j])
    label_times(axes[-1], dates)
    figures = {"spends": figure}
    if not np.issubdtype(times.dtype, np.datetime64):
        return figures
    each_year = times.astype("datetime64[Y]").astype(int) + 1970
    years = np.unique(each_year)
    if len(years) > 1:
        figure, (axis,) = new_figure(1, 1, width=6.0, height=3.0)
        width = 0.8 / len(years)
        for k, year in enumerate(years):
            totals = np.nansum(u[each_year == year], 0)
            places = np.arange(c) + (k - (len(years) - 1) / 2) * width
            axis.bar(places, totals, width, color=colour_of(k), label=str(year))
        axis.set_xticks(np.arange(c), names)
        axis.set_ylabel("spent in the year")
        legend_below(figure, [axis])
        figures["spends_by_year"] = figure
    return figures
