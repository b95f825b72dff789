"""Effect of an intervention: observed and counterfactual (Brodersen et al. 2015, Fig 1)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.posteriors import ForecastMoments
from components.figures.style import BLACK, Figures, legend_above, new_figure
from components.series.figures.bands import draw_band
from components.series.figures.time_axis import axis_times, label_times

TAIL = 3  # length of the observed part drawn, in multiples of the part that follows


def effect(
    seen: Tensor,
    future: Tensor,
    without: ForecastMoments,
    dates: tuple[str, ...] = (),
    label: str = "y",
) -> Figures:
    """Observations [T] and [H] with the counterfactual forecast (without the intervention), the
    effect at each time, and the cumulative effect: means and central 95 % bands.  ``label`` is the
    name of y."""
    n = len(seen)
    h = len(future)
    begin = max(0, n - TAIL * h)
    t = axis_times(dates, n, n + h)
    boundary = axis_times(dates, n - 1, n + 1)  # between the last observed time and the next
    began = boundary[0] + (boundary[1] - boundary[0]) / 2
    each = torch.eye(h).to(without.mean)
    until = each.new_ones(h, h).tril() * ~future.isnan()
    nothing = torch.zeros_like(future)
    figure, axes = new_figure(3, 1, width=9.0, height=2.1, sharex=True)
    for axis, weights, observed, sign, title in (
        (axes[0], each, nothing, 1, label),
        (axes[1], each, future, -1, "pointwise effect"),
        (axes[2], until, future.nan_to_num(0.0).cumsum(0), -1, "cumulative effect"),
    ):
        law = without.sums(weights)
        mean, lower, upper = (
            observed + sign * value[:, 0]
            for value in (law.mean, law.quantile(0.025), law.quantile(0.975))
        )
        draw_band(axis, t, (mean, lower, upper), "mean", ls="--")
        axis.axvline(began, color="0.35", lw=0.8)
        axis.set_ylabel(title)
    axes[0].plot(
        axis_times(dates, begin, n), seen[begin:].cpu(), color=BLACK, lw=1.0, label="observed"
    )
    axes[0].plot(t, future.cpu(), color=BLACK, lw=1.0)
    legend_above(axes[0])
    for axis in axes[1:]:
        axis.axhline(0, color="0.35", lw=0.8)
    label_times(axes[-1], dates)
    return {"effect": figure}
