"""Residuals of a model of a series, compared with noise (Gallego Fig 1.4)."""

from __future__ import annotations

import math

import torch

from components.contracts.posteriors import StructuralPosterior
from components.figures.style import BLUE, Figures, new_figure
from components.series.figures.time_axis import axis_times, label_times

FEWEST = 8
MOST_LAGS = 40


def residuals(posterior: StructuralPosterior) -> Figures:
    """Standardised one-step residuals over time, their Q-Q plot against the normal distribution,
    and their autocorrelation with the band ±1.96/√T of white noise."""
    every = posterior.residuals.cpu().double()
    is_observed = ~every.isnan()
    n = int(is_observed.sum())
    if n < FEWEST:
        return {}
    z = every[is_observed]
    figure, (time, quantiles, lagged) = new_figure(1, 3, width=4.0, height=2.8)
    dates = posterior.series.dates
    time.plot(axis_times(dates, 0, len(every)), every, ".", ms=4, color=BLUE)
    time.set(title=f"{n:,} one-step residuals", ylabel="standard deviations")
    label_times(time, dates, most=5)
    normal = torch.special.ndtri((torch.arange(n, dtype=torch.float64) + 0.5) / n)
    quantiles.plot(normal, z.sort().values, ".", ms=4, color=BLUE)
    quantiles.axline((0, 0), slope=1, color="0.35", lw=0.8, ls="--")
    quantiles.set(xlabel="normal quantile", ylabel="residual", title="quantiles")
    filled = torch.where(is_observed, every - z.mean(), 0.0)
    lags = min(MOST_LAGS, n // 2)
    sum_squares = (filled * filled).sum()
    correlation = [
        float((filled[k:] * filled[:-k]).sum() / sum_squares) for k in range(1, lags + 1)
    ]
    lagged.bar(range(1, lags + 1), correlation, width=0.5, color=BLUE)
    for side in (-1, 0, 1):
        lagged.axhline(side * 1.96 / math.sqrt(n), color="0.35", lw=0.8, ls="--" if side else "-")
    lagged.set(xlabel="lag", title="autocorrelation (dashed: 95 % of noise)")
    return {"residuals": figure}
