"""Bands of series and states over time, and ticks below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from components.contracts.posteriors import FilteredStates, SmoothedStates
from components.figures.style import BLUE, RED, SKY
from components.series.figures.outliers import REPLICATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_band(
    axis: Axes,
    t: Any,
    moments: tuple[Tensor, Tensor, Tensor],
    label: str | None = None,
    percent: int = 95,
    ls: str = "-",
) -> None:
    """Draw the mean as a line within the band between two quantiles; mean, lower, upper [T]."""
    mean, lower, upper = (value.cpu() for value in moments)
    axis.fill_between(t, lower, upper, color=SKY, alpha=0.5, lw=0, label=f"{percent} % band")
    axis.plot(t, mean, color=BLUE, lw=1.2, ls=ls, label=label)


def drawn_states(found: SmoothedStates) -> tuple[str, tuple[Tensor, Tensor, Tensor]]:
    """Label of the mean, and mean, lower and upper quantile [T, dx] of the drawn replicate."""
    kind = "filtered" if isinstance(found, FilteredStates) else "smoothed"
    mean, lower, upper = (v[REPLICATE].cpu() for v in (found.mean, found.lower, found.upper))
    return f"{kind} mean", (mean, lower, upper)


def draw_ticks(axis: Axes, t: Any, where: Tensor, label: str | None = None) -> None:
    """Draw ticks just above the axis at some of the times, without any effect on its scale."""
    axis.plot(
        t[where.numpy()],
        torch.full((int(where.sum()),), 0.02),
        "|",
        ms=8,
        mew=1.5,
        color=RED,
        alpha=0.7,
        transform=axis.get_xaxis_transform(),
        label=label,
    )
