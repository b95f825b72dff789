"""Forecast of a series next to the actual values (Gallego section 2.4.2, prediction)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.predictive import Categorical, Predictive
from components.figures.style import BLACK, GREY, SKY, Figures, legend_above, new_figure
from components.series.figures.bands import draw_band
from components.series.figures.time_axis import axis_times, label_times

TAIL = 3  # length of the observed part drawn, in multiples of the forecast


def forecast(
    seen: Tensor,
    future: Tensor,
    found: Predictive,
    dates: tuple[str, ...] = (),
    label: str = "",
) -> Figures:
    """The end of a series [T], the actual values [H], and the forecast: mean and central 95 % band
    of numbers, probabilities of classes as areas.  ``label`` names the vertical axis of numbers."""
    n = len(seen)
    h = len(future)
    begin = max(0, n - TAIL * h)
    t = axis_times(dates, n, n + h)
    figure, (axis,) = new_figure(1, 1, width=9.0, height=2.8)
    if isinstance(found, Categorical):
        probs = found.probs[:, 0].cpu()  # [H, C]
        for c in range(probs.shape[1]):
            name = "probability, by area" if c == 0 else None
            axis.scatter(t, torch.full((h,), float(c)), s=200 * probs[:, c], color=SKY, label=name)
        axis.set(ylabel="class", yticks=range(probs.shape[1]))
    else:
        lower, upper = (found.quantile(level)[:, 0] for level in (0.025, 0.975))
        draw_band(axis, t, (found.mean[:, 0], lower, upper), "forecast")
        axis.set_ylabel(label)
    axis.plot(
        axis_times(dates, begin, n), seen[begin:].cpu(), ".", ms=4, color=GREY, label="observed"
    )
    axis.plot(t, future.cpu(), ".", ms=5, color=BLACK, label="observed later")
    label_times(axis, dates)
    legend_above(axis)
    return {"forecast": figure}
