"""Draws of pairs of parameters, with divergent transitions of a Hamiltonian sampler."""

from __future__ import annotations

import math

import torch

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, parameters, part
from components.figures.style import BLUE, RED, Figures, new_figure, scatter
from components.maths.particles.resampling import systematic_counts
from components.maths.spacing import spaced_rows

MOST_PAIRED = 5
MOST_POINTS = 2000
MOST_BINS = 40


def pairs(problem: Target | None, draws: HoldsDraws) -> Figures:
    """Scatter plots of all pairs of the first five parameters, with histograms on the diagonal.

    At most 2,000 evenly spaced draws are dots; all divergent ones are crosses in the second colour.
    Weighted draws are resampled systematically, so that dots and bars represent the posterior."""
    panels = parameters(problem, draws, MOST_PAIRED)
    if len(panels) < 2 or draws.n_draws * draws.n_chains < 2:
        return {}
    values = torch.stack([v.flatten() for _, _, v in panels], 1)  # [C·N, D]
    if draws.log_weights is not None:
        counts = systematic_counts(draws.weights.unsqueeze(0).cpu(), torch.tensor([0.5]))
        values = values.repeat_interleave(counts.flatten(), 0)
    bad = torch.zeros(len(values), dtype=torch.bool)
    if draws.log_weights is None and "diverging" in draws.stats:
        bad = draws.stats["diverging"].flatten().cpu().bool()
    dots = values[spaced_rows(len(values), MOST_POINTS)]
    crosses = values[bad]
    d = len(panels)
    width, height = (2.0, 1.9) if d > 2 else (2.8, 2.6)
    figure, axes = new_figure(d, d, width=width, height=height)
    low = values.amin(0)
    high = values.amax(0)
    bins = min(MOST_BINS, math.ceil(2 * len(values) ** (1 / 3)))  # Rice's rule
    reach = 0.04 * (high - low).clamp_min(1e-12)
    limits = torch.stack([low - reach, high + reach], 1).tolist()
    for i in range(d):
        for j in range(d):
            axis = axes[d * i + j]
            axis.tick_params(labelsize=7)
            if j > i:
                axis.set_axis_off()
                continue
            axis.set_xlim(limits[j])
            if i == j:
                axis.hist(values[:, i].numpy(), bins=bins, color=BLUE, alpha=0.75)
                axis.set_yticks([])
                axis.set_title(panels[i][0], fontsize=9)
            else:
                axis.set_ylim(limits[i])
                look = {"s": 4, "alpha": 0.35, "color": BLUE, "linewidth": 0, "rasterized": True}
                scatter(axis, dots[:, [j, i]], **look)
                scatter(axis, crosses[:, [j, i]], s=16, color=RED, marker="x", linewidth=1)
                if j == 0:
                    axis.set_ylabel(panels[i][0], fontsize=9)
            if i == d - 1:
                axis.set_xlabel(panels[j][0], fontsize=9)
    n = int(bad.sum())
    divergent = f"{n} divergent draw{'' if n == 1 else 's'} (crosses)" if n else ""
    figure.suptitle(", ".join(filter(None, (part(problem, draws, d), divergent))), fontsize=10)
    return {"pairs": figure}
