"""Autocorrelation of the stored draws of chains."""

from __future__ import annotations

import math

import numpy as np

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, parameters, part
from components.figures.style import BLUE, RED, Figures, label_below, legend_below, panel_grid
from components.metrics.array_stats import load_array_stats

MOST_LAGS = 100
FEWEST_DRAWS = 10


def autocorrelation(problem: Target | None, draws: HoldsDraws) -> Figures:
    """Autocorrelation against the lag in stored draws, a panel per parameter.

    Thin lines are single chains, the thick line is their mean.  Each chain is centred at its
    own mean: chains that disagree are visible in the rank plot, not here.  The dashed lines
    are ±1.96/√(CN), the 95 % range of the mean for independent draws.  A chain that does
    not move has no autocorrelation.  Weighted draws are not chains: nothing is drawn.
    """
    panels = parameters(problem, draws)
    chains = draws.n_chains
    n = draws.n_draws
    if not panels or n < FEWEST_DRAWS or draws.log_weights is not None:
        return {}

    lags = min(n // 2, MOST_LAGS)
    figure, axes, columns = panel_grid(len(panels), width=2.8, height=2.5, sharex=True, sharey=True)
    for axis, (name, _, values) in zip(axes, panels, strict=True):
        moving = values.numpy()[values.numpy().std(1) > 0]
        axis.axhline(0, color="0.35", linewidth=0.8)
        for side in (-1, 1):
            axis.axhline(
                side * 1.96 / math.sqrt(chains * n),
                color="0.35",
                linewidth=0.8,
                linestyle="--",
                label="95 % of means of independent draws",
            )
        if len(moving):
            # [C, lags + 1]
            correlation = np.asarray(load_array_stats().autocorr(moving, axis=-1))[:, : lags + 1]
            lines = axis.plot(correlation.T, color=BLUE, linewidth=0.5, alpha=0.4)
            lines[0].set_label("single chains")
            axis.plot(correlation.mean(0), color=RED, linewidth=1.8, label="their mean")
        axis.set(title=name, xlim=(0, lags), ylim=(min(-0.35, axis.get_ylim()[0]), 1.05))
        axis.locator_params(axis="x", nbins=5, integer=True)
        axis.tick_params(labelsize=8)
    label_below(axes, columns, "lag, in stored draws")
    figure.supylabel("autocorrelation", fontsize=10)
    legend_below(figure, axes)
    figure.suptitle(part(problem, draws, len(panels)), fontsize=10)
    return {"autocorrelation": figure}
