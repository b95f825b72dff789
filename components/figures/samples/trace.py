"""Traces of chains and convergence of their estimates (Gallego Figs 2.3 and 2.5)."""

from __future__ import annotations

import torch

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, parameters, part
from components.figures.style import BLUE, PALETTE, RED, Figures, legend_below, new_figure

FEW = 4  # number of rows up to which rows are tall


def trace(problem: Target | None, draws: HoldsDraws) -> Figures:
    """One row per parameter: draws of each chain, and running estimates of E[X] and E[X²].

    Thin lines are single chains, the thick line is pooled; exact moments of the problem (``mean``,
    ``second_moment``), if known, are dashed.  Weighted draws are not chains: nothing is drawn."""
    rows = parameters(problem, draws)
    if not rows or draws.n_draws < 2 or draws.log_weights is not None:
        return {}
    figure, axes = new_figure(
        len(rows), 3, width=3.8, height=2.3 if len(rows) <= FEW else 1.6, sharex=True
    )
    count = torch.arange(1, draws.n_draws + 1)
    exact = (None, None) if problem is None else (problem.mean, problem.second_moment)
    for i, (name, j, values) in enumerate(rows):
        left_axis, middle_axis, right_axis = axes[3 * i : 3 * i + 3]
        left_axis.set(title=f"draws of {name}", ylabel=name)
        left_axis.plot(count, values.T, lw=0.5, alpha=0.6)
        for c, line in enumerate(left_axis.get_lines()):
            line.set_color(PALETTE[c % 6])
        for axis, power, truth in ((middle_axis, 1, exact[0]), (right_axis, 2, exact[1])):
            running = (values**power).cumsum(1) / count  # [C, N]
            lines = axis.plot(count, running.T, lw=0.4, alpha=0.35, color=BLUE)
            lines[0].set_label("single chains")
            axis.plot(count, running.mean(0), lw=2, color=RED, label="all chains")
            if truth is not None:
                axis.axhline(float(truth[j]), color="black", lw=1, ls="--", label="exact")
            axis.set_title(f"estimate of E[{name}{'²' if power == 2 else ''}]")
    legend_below(figure, axes[1:2])
    for axis in axes[-3:]:
        axis.set_xlabel("stored draws per chain")
    figure.suptitle(part(problem, draws, len(rows)), fontsize=10)
    return {"trace": figure}
