"""Coverage over time and the spread of errors over replicates (Boustati Fig. 6.1)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.posteriors import SmoothedStates
from components.contracts.sequences import Trajectories
from components.figures.style import PALETTE, Figures, legend_above, new_figure
from components.series.figures.spread import draw_boxes
from components.series.scores import filtering

WINDOWS = 25  # stretches of time over which coverage is averaged
FEWEST_IN_BOX = 5  # fewest replicates for a box; fewer are drawn as points
FEWEST = 20  # fewest states in each window


def _window_coverage(covered: Tensor) -> tuple[Tensor, Tensor]:
    """Means over at most about 25 windows of consecutive times; covered [R, T, dx] -> centres [W], coverage
    [W, dx]."""
    size = max(1, covered.shape[1] // WINDOWS, math.ceil(FEWEST / len(covered)))
    parts = covered.split(size, 1)
    centres = torch.tensor([i * size + (part.shape[1] + 1) / 2 for i, part in enumerate(parts)])
    return centres, torch.stack([part.mean((0, 1)) for part in parts])


def coverage(problem: Trajectories, found: SmoothedStates) -> Figures:
    """90 % coverage of each state dimension over time, and box plots of its error over replicates.

    Boxes show RMSE in the units of the state, because NMSE of positions and velocities differ by
    orders of magnitude.  Nothing is drawn if the true states are unknown."""
    if problem.states is None:
        return {}
    states = problem.states[:, : found.mean.shape[1]]
    names = problem.state_names
    covered = ((found.lower <= states) & (states <= found.upper)).double().cpu()
    centres, level = _window_coverage(covered)
    nmse = filtering.nmse(states, found.mean).cpu()  # [R, dx]
    rmse = (states - found.mean).square().mean(1).sqrt().cpu()  # [R, dx]

    figure, (left, right) = new_figure(1, 2, width=5.2, height=3.2)
    for j, name in enumerate(names):
        left.plot(centres, level[:, j], color=PALETTE[j], lw=1.2, label=name)
    left.axhline(0.9, color="black", ls="--", lw=1, label="nominal")
    left.set(
        ylabel="coverage of the 90 % interval",
        xlabel="t",
        ylim=(min(0.6, float(level.min()) - 0.05), 1.02),
    )
    # Room for the legend above the axis: coverage may lie anywhere on it.
    legend_above(left)
    units = dict.fromkeys(label.partition(", ")[2] for label in problem.state_labels)
    units.pop("", None)
    labels = [f"{name}\n{float(nmse[:, j].median()):.1e}" for j, name in enumerate(names)]
    if len(rmse) < FEWEST_IN_BOX:
        for j in range(len(names)):
            right.plot([j + 1] * len(rmse), rmse[:, j], "o", color=PALETTE[j], alpha=0.8)
    else:
        colours = [{"facecolor": PALETTE[j]} for j in range(len(names))]
        draw_boxes(right, list(rmse.T.numpy()), range(1, len(names) + 1), colours)
    right.set_xticks(range(1, len(names) + 1), labels)
    right.set_xlim(0.5, len(names) + 0.5)
    right.tick_params(axis="x", labelsize=8 if len(names) <= 4 else 7)
    right.set(
        title=f"{len(nmse)} replicate{'s' * (len(nmse) > 1)}",
        xlabel="under each name: its median NMSE",
        ylabel=f"RMSE, {' and '.join(units)}" if units else "RMSE",
    )
    right.set_ylim(bottom=0)
    return {"coverage": figure}
