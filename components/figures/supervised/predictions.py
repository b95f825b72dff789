"""Predicted against true labels of a regression problem for each task."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import BLUE, RED, Axes, Figures, label_below, legend_below, panel_grid
from components.figures.supervised.tasks import label_units, name_tasks
from components.maths.spacing import spaced_rows
from components.metrics.regression import coverage90_by_task, rmse_by_task

KINDS = {BLUE: "label inside the interval", RED: "label outside"}  # by colour


def predictions(
    problem: LabelledProblem, posterior: Predicts, rng: Rng, n_points: int = 150
) -> Figures:
    """One panel per task: predictive mean and central 90 % interval against the true label of
    ``n_points`` test rows.

    Intervals that do not contain the label have the second colour.  Scores in titles are over all
    test labels, like the scores of the run, with RMSE in standardised units.  Axes are in the
    labels' unit if known, otherwise standardised.  Nothing is drawn for class labels or without
    test labels; a panel is empty if none of the plotted rows has a label of its task."""
    if problem.target != "real" or not bool(problem.test.mask.any()):
        return {}
    test = problem.test
    n = test.x.shape[0]
    # evenly spaced test rows, the same at every evaluation and for every model
    rows = spaced_rows(n, n_points, dtype=torch.float64).to(test.x.device)
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, test.x, rng)  # the level of the scores
    assert isinstance(predictive, GaussianMixture)
    rmse = rmse_by_task(predictive, test.y, test.mask).tolist()
    covered_share = coverage90_by_task(predictive, test.y, test.mask).tolist()
    shown = GaussianMixture(predictive.mu[:, rows], predictive.v[:, rows])
    y = test.y[rows]
    if problem.label_unit:
        location, scale = label_units(problem)
        shown = shown.rescale(location, scale)
        y = location + scale * y
    mean, lower, upper = (a.cpu() for a in (shown.mean, shown.quantile(0.05), shown.quantile(0.95)))
    y = y.cpu()
    mask = test.mask[rows].cpu()

    n_tasks = problem.n_tasks
    width = max(2.7, 5.0 / n_tasks)  # a single panel leaves space for the legend and the axis names
    figure, axes, columns = panel_grid(n_tasks, width=width, height=width + 0.05)
    for t, (ax, name) in enumerate(zip(axes, name_tasks(problem), strict=True)):
        is_labelled = mask[:, t]
        if not bool(is_labelled.any()):
            ax.set_title(f"{name}\nno labels in the plotted rows", fontsize=9)
            ax.set_axis_off()
            continue
        _draw_task(ax, *(values[is_labelled, t] for values in (y, mean, lower, upper)))
        ax.set_title(
            f"{name}\nRMSE {rmse[t]:.2f}, {100 * covered_share[t]:.0f} % covered", fontsize=9
        )
        ax.tick_params(labelsize=8)
    legend_below(figure, axes, fontsize=9)
    unit = problem.label_unit or ("standardised" if problem.y_std is not None else "")
    label_below(axes, columns, f"true label ({unit})" if unit else "true label")
    figure.supylabel("prediction, central 90 %", fontsize=10)
    few = f"{len(rows):,} plotted" if len(rows) < n else "all drawn"
    kind = "standardised RMSE" if problem.y_std is not None else "RMSE"
    figure.suptitle(f"{kind} and coverage of all {n:,} test rows, {few}", fontsize=10)
    return {"predictions": figure}


def _draw_task(ax: Axes, truth: Tensor, centre: Tensor, low: Tensor, high: Tensor) -> None:
    """Draw means and intervals against the labels of one task."""
    is_inside = (truth >= low) & (truth <= high)
    everything = torch.cat([truth, centre])
    reach = float(everything.max() - everything.min()) * 0.05 or 1.0
    ends = float(everything.min()) - reach, float(everything.max()) + reach
    ax.plot(ends, ends, color="0.35", linewidth=0.8, zorder=1)
    for subset, (colour, label) in zip((is_inside, ~is_inside), KINDS.items(), strict=True):
        x = truth[subset]
        ax.vlines(x, low[subset], high[subset], color=colour, alpha=0.35, linewidth=1.1, zorder=2)
        ax.scatter(x, centre[subset], s=9, color=colour, linewidth=0, zorder=3, label=label)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
