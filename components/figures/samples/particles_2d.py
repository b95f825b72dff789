"""Start and end of the chains of a two-dimensional target (Gallego Fig. 2.4)."""

from __future__ import annotations

import torch

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, density_plane
from components.figures.style import BLUE, PALETTE, RED, Figures, new_figure, scatter

GRID = 200  # points of the density along each axis
LARGEST = 200  # area of the marker with the largest weight, in square points


def particles_2d(problem: Target, draws: HoldsDraws) -> Figures:
    """Three panels over the same contours: starting points, draws coloured by chain, and the
    density itself.

    Weighted draws have markers with area proportional to weight instead of colours."""
    if problem.dim != 2 or draws.n_draws == 0:
        return {}
    like = draws.draws
    x, y, log_density = density_plane(problem.box, problem.log_density, like, GRID)
    density = log_density.exp()
    figure, axes = new_figure(1, 3, width=3.6, height=4.3, sharex=True, sharey=True)
    chains, n, _ = like.shape
    wide, tall = (high - low for low, high in problem.box)
    titles = [
        f"{chains} starting points",
        f"{chains} chains × {n} draws"
        if draws.log_weights is None
        else f"{chains * n:,} weighted draws",
        f"density π, at most {float(density.max()):.2g}",
    ]
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel=problem.names[0], xlim=problem.box[0], ylim=problem.box[1])
        axis.set_box_aspect(tall / wide)
        axis.grid(False)
    axes[0].set_ylabel(problem.names[1])
    levels = density.max() * torch.tensor([0.05, 0.3, 0.7])
    for axis in axes[:2]:
        axis.contour(x, y, density, levels=levels, colors="#999999", linewidths=0.7)
    start = draws.start.cpu()
    scatter(axes[0], start, s=22, color=RED, edgecolor="white", linewidth=0.5, zorder=3)
    if draws.log_weights is not None:
        area = (LARGEST * draws.weights / draws.weights.max()).cpu()
        scatter(
            axes[1],
            draws.flat.cpu(),
            s=area,
            alpha=0.5,
            color=BLUE,
            linewidth=0,
            zorder=3,
        )
    for c, chain in enumerate(like.cpu() if draws.log_weights is None else ()):
        # few colours for many chains: neighbours differ, so that a single chain can be traced
        axes[1].plot(*chain.T, lw=0.3, alpha=0.25, color=PALETTE[c % 6])
        scatter(axes[1], chain, s=5, alpha=0.7, color=PALETTE[c % 6], linewidth=0, zorder=3)
    axes[2].pcolormesh(x, y, density, cmap="Blues", rasterized=True)
    return {"particles": figure}
