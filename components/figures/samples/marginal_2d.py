"""Draws in the plane of two parameters of a target of any dimension.

Includes highest-density regions of the target.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, density_plane
from components.figures.style import PALETTE, Figures, new_figure, scatter

GRID = 600  # points along each axis
LEVELS = (0.5, 0.9, 0.99)
MOST_DRAWS = 3000  # maximum dots, more would overlap
EXACT_DRAWS = 20_000
Sampler = Callable[[int, torch.Generator], Tensor]


def marginal_2d(
    log_marginal: Callable[[Tensor], Tensor], exact: Sampler
) -> Callable[[Target, HoldsDraws], Figures]:
    """A figure of the first two parameters, from their log density [K, 2] -> [K] and n exact draws
    from it, n -> [n, 2].

    The title has the share of draws in each highest-density region."""

    def marginal(problem: Target, draws: HoldsDraws) -> Figures:
        if draws.n_draws == 0:
            return {}
        values = draws.values[..., :2]  # [C, N, 2]
        x, y, log_density = density_plane(problem.box[:2], log_marginal, values, GRID)
        # log π of a draw from π exceeds a threshold with the probability of the region above it:
        # use quantiles of exact draws, which are more accurate than a grid
        generator = torch.Generator(device=values.device).manual_seed(0)
        exact_log_probs = log_marginal(exact(EXACT_DRAWS, generator))
        thresholds = [float(exact_log_probs.quantile(1 - level)) for level in LEVELS]
        log_probs = log_marginal(values.flatten(0, 1))
        summary = ", ".join(
            f"{100 * float((log_probs >= t).to(log_probs.dtype).mean()):.0f} % in the {100 * level:.0f} % region"
            for level, t in zip(LEVELS, thresholds, strict=True)
        )
        figure, (axis,) = new_figure(1, 1, width=6.0, height=5.0)
        every = max(1, values.shape[0] * values.shape[1] // MOST_DRAWS)
        for c, chain in enumerate(values.cpu()):
            points = chain[::every]
            scatter(axis, points, s=5, alpha=0.6, color=PALETTE[c % 6], linewidth=0)
        axis.contour(
            x,
            y,
            log_density,
            levels=thresholds[::-1],
            colors="#444444",
            linewidths=0.9,
            linestyles="solid",
        )
        axis.set(
            xlabel=problem.names[0],
            ylabel=problem.names[1],
            xlim=problem.box[0],
            ylim=problem.box[1],
        )
        n = values.shape[0] * values.shape[1]
        axis.set_title(f"of {n:,} draws:\n{summary}", fontsize=9)
        return {"marginal": figure}

    return marginal
