"""The paths of a few particles in the plane, from their starts (Gallego Fig. 2.2)."""

from __future__ import annotations

import torch

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, density_plane
from components.figures.style import Figures, colour_of, legend_above, new_figure, scatter

GRID = 150  # points of the density along each axis
MOST_CHAINS = 10  # maximum paths, more would overlap


def trajectories_2d(problem: Target, draws: HoldsDraws) -> Figures:
    """One path per particle through its stored states, over contours of the density that contain
    39, 86 and 99 % for a Gaussian."""
    if problem.dim != 2 or draws.n_draws < 2 or draws.n_chains > MOST_CHAINS:
        return {}
    like = draws.draws
    paths = torch.cat([draws.start.unsqueeze(1), like], 1).cpu()  # [C, N + 1, 2]
    x, y, log_density = density_plane(problem.box, problem.log_density, like, GRID)
    figure, (axis,) = new_figure(1, 1, width=5.2, height=5.0)
    # 3, 2 and 1 standard deviations of a Gaussian
    levels = log_density.max() - torch.tensor([4.5, 2.0, 0.5])
    axis.contour(x, y, log_density, levels=levels, colors="#999999", linewidths=0.7, linestyles="-")
    for c, path in enumerate(paths):
        axis.plot(*path.T, lw=0.9, alpha=0.7, color=colour_of(c))
    for label, points, colour in (("start", paths[:, 0], "white"), ("end", paths[:, -1], "black")):
        scatter(
            axis,
            points,
            s=26,
            color=colour,
            edgecolor="black",
            linewidth=0.8,
            zorder=3,
            label=label,
        )
    axis.set(title=f"{len(paths)} particles", xlabel=problem.names[0], ylabel=problem.names[1])
    axis.set_aspect("equal")
    legend_above(axis)
    return {"trajectories": figure}
