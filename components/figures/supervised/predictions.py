"""Predicted against true labels of a regression problem, task by task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from components.contracts.posteriors import Predicts
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def predictions(
    problem: LabelledProblem, posterior: Predicts, rng: Rng, n_points: int = 150
) -> dict[str, Figure]:
    """One panel per task: predictive mean and central 90 % interval against the true label of
    ``n_points`` test rows.

    Intervals that miss the label are drawn in the second colour.  The titles' scores are over these
    very rows, in standardised units.  Nothing is drawn for class labels, of a task none of these
    rows has a label of, or without any."""
    if problem.target != "real" or not bool(problem.test.mask.any()):
        return {}
    from matplotlib.lines import Line2D

    test = problem.test
    n = test.x.shape[0]
    # An even spread over the test rows: the same rows at every evaluation and for every model.
    rows = (
        torch.arange(n)
        if n <= n_points
        else torch.linspace(0, n - 1, n_points, dtype=torch.float64).round().long()
    )
    rows = rows.to(test.x.device)
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, test.x[rows], rng)
    assert isinstance(predictive, GaussianMixture)
    mean, lower, upper = (
        a.cpu() for a in (predictive.mean, predictive.quantile(0.05), predictive.quantile(0.95))
    )
    y = test.y[rows].cpu()
    mask = test.mask[rows].cpu()

    n_tasks = problem.n_tasks
    columns = min(n_tasks, 4)
    width = max(2.7, 5.0 / columns)  # a single panel leaves room for the legend and the axes' names
    figure, axes = new_figure(
        math.ceil(n_tasks / columns), columns, width=width, height=width + 0.05
    )
    for t, ax in enumerate(axes):
        if t >= n_tasks:
            ax.set_axis_off()
            continue
        is_labelled = mask[:, t]
        name = problem.task_names[t] if problem.task_names else f"task {t + 1}"
        if not bool(is_labelled.any()):
            ax.set_title(f"{name}\nno test labels", fontsize=9)
            ax.set_axis_off()
            continue
        truth = y[is_labelled, t]
        centre = mean[is_labelled, t]
        below = lower[is_labelled, t]
        above = upper[is_labelled, t]
        covered = (truth >= below) & (truth <= above)
        everything = torch.cat([truth, centre])
        reach = float(everything.max() - everything.min()) * 0.05 or 1.0
        low = float(everything.min()) - reach
        high = float(everything.max()) + reach
        ax.plot([low, high], [low, high], color="0.35", linewidth=0.8, zorder=1)
        for subset, colour in ((covered, PALETTE[0]), (~covered, PALETTE[1])):
            ax.vlines(
                truth[subset],
                below[subset],
                above[subset],
                color=colour,
                alpha=0.35,
                linewidth=1.1,
                zorder=2,
            )
            ax.scatter(truth[subset], centre[subset], s=9, color=colour, linewidth=0, zorder=3)
        rmse = float(((truth - centre) ** 2).mean().sqrt())
        ax.set_title(
            f"{name}\nRMSE {rmse:.2f}, {100 * float(covered.double().mean()):.0f} % covered",
            fontsize=9,
        )
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ax.tick_params(labelsize=8)
    kinds = [
        Line2D([], [], color=PALETTE[i], marker="o", markersize=3.5, alpha=0.8) for i in (0, 1)
    ]
    figure.legend(
        kinds,
        ["label inside the interval", "label outside"],
        loc="outside upper right",
        ncols=2,
        frameon=False,
        fontsize=9,
    )
    figure.supxlabel("true label (standardised)", fontsize=10)
    figure.supylabel("prediction with its central 90 % interval", fontsize=10)
    return {"predictions": figure}
