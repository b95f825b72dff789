"""Ranks of simulation-based calibration: ECDF differences with simultaneous bands, and histograms."""

from __future__ import annotations

import numpy as np

from components.figures.style import BLUE, Figures, label_below, legend_below, panel_grid
from components.metrics.rank_uniformity import ecdf_difference


def calibration_figures(
    ranks: dict[str, np.ndarray], draws: int, bins: int, rng: np.random.Generator
) -> Figures:
    """One panel per quantity for ranks [R] in 0 … ``draws``.

    ``ecdf``: ECDF(z) − z and its simultaneous 95 % band. ``ranks`` shows counts in ``bins`` with
    the central 95 % of a bin's binomial distribution.

    Source: Säilynoja, Bürkner and Vehtari (2022), Figure 1; Talts et al. (2018), Figure 3."""
    from scipy.stats import binom  # slow to import

    figure, axes, columns = panel_grid(len(ranks), width=2.6, height=2.0, sharex=True)
    histogram, bars, _ = panel_grid(len(ranks), width=2.6, height=2.0, sharex=True)
    edges = np.linspace(0, draws + 1, bins + 1)
    for axis, bar, (name, values) in zip(axes, bars, ranks.items(), strict=True):
        ecdf = ecdf_difference(values, draws, rng)
        axis.fill_between(
            ecdf.z, ecdf.lower, ecdf.upper, color="0.85", step="post", label="95 % of uniform ranks"
        )
        axis.step(ecdf.z, ecdf.difference, where="post", color=BLUE, label="ECDF − uniform")
        axis.set_title(name, fontsize=9)
        low, high = binom.ppf([0.025, 0.975], len(values), 1 / bins)
        bar.axhspan(low, high, color="0.85")
        bar.hist(values, bins=edges.tolist(), color=BLUE)
        bar.axhline(len(values) / bins, color="black", lw=0.8)
        bar.set_title(name, fontsize=9)
    legend_below(figure, axes[:1])
    label_below(axes, columns, "fractional rank")
    label_below(bars, columns, "rank of the truth")
    return {"ecdf": figure, "ranks": histogram}
