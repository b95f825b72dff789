"""How chains move and how their estimates settle (Gallego Figs 2.3 and 2.5)."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from components.draws import Draws
from components.figures.style import PALETTE, new_figure
from components.problems.density import Density

MOST_COORDINATES = 4  # rows drawn


def trace(problem: Density, draws: Draws) -> dict[str, Figure]:
    """A row per coordinate: draws of each chain, then the running estimates of E[X] and E[X²] beside the exact values.

    Thin lines are single chains, the thick one pools them."""
    if draws.n_draws < 2:
        return {}
    rows = min(len(problem.names), MOST_COORDINATES)
    figure, axes = new_figure(rows, 3, width=3.8, height=2.3, sharex=True)
    samples = draws.values.cpu()  # [C, N, P']
    count = torch.arange(1, draws.n_draws + 1)
    for j in range(rows):
        left, middle, right = axes[3 * j : 3 * j + 3]
        name = problem.names[j]
        left.set(title=f"draws of {name}", ylabel=name)
        left.plot(count, samples[:, :, j].T, lw=0.5, alpha=0.6)
        for c, line in enumerate(left.get_lines()):
            line.set_color(PALETTE[c % 6])
        for axis, power, exact in ((middle, 1, problem.mean), (right, 2, problem.second_moment)):
            moment = f"E[{name}{'²' if power == 2 else ''}]"
            running = (samples[:, :, j] ** power).cumsum(1) / count  # [C, N]
            axis.plot(count, running.T, lw=0.4, alpha=0.35, color=PALETTE[0])
            axis.plot(count, running.mean(0), lw=2, color=PALETTE[1], label="all chains")
            axis.axhline(float(exact[j]), color="black", lw=1, ls="--", label="exact")
            axis.set_title(f"estimate of {moment}")
        if j == 0:
            middle.legend(loc="upper right", fontsize=8, framealpha=0.9, edgecolor="none")
    for axis in axes[-3:]:
        axis.set_xlabel("draws kept per chain")
    return {"trace": figure}
