"""The fit to a problem with one input: data, truth, predictive mean and 90 % band of every task."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical, GaussianMixture
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import BLUE, RED, Figures, legend_below, new_figure
from components.figures.supervised.tasks import label_units, name_tasks


def toy_fit(
    problem: LabelledProblem,
    posterior: Predicts,
    rng: Rng,
    truth: Callable[[Tensor], Tensor] | None = None,
    n_grid: int = 400,
) -> Figures:
    """Fit of each task: training labels, truth(x) [B, T], mean and central 90 % band.

    There is one panel per task, in the units of the labels.  The band is for an observation (it
    includes the noise).  Nothing is drawn unless there is one real-valued input and the labels are
    real.

    Source: Boustati (2021), Fig 3.1.
    """
    if problem.target != "real" or problem.n_inputs != 1:
        return {}
    train = problem.train
    low, high = problem.bounds or (float(train.x.min()), float(train.x.max()))
    x = torch.linspace(low, high, n_grid, dtype=train.x.dtype, device=train.x.device)
    location, scale = label_units(problem)
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, x[:, None], rng)
    if isinstance(predictive, Categorical):
        return {}
    if isinstance(predictive, GaussianMixture):
        predictive = predictive.rescale(location, scale)
    mean = predictive.mean.cpu()  # [n_grid, T]
    lower = predictive.quantile(0.05).cpu()
    upper = predictive.quantile(0.95).cpu()
    labels = (location + scale * train.y).cpu()
    grid = x.cpu()
    margin = 0.015 * (high - low)

    figure, axes = new_figure(1, problem.n_tasks, width=4.8, height=3.3)
    for t, (ax, name) in enumerate(zip(axes, name_tasks(problem), strict=True)):
        is_labelled = train.mask[:, t].cpu()
        ax.fill_between(
            grid,
            lower[:, t],
            upper[:, t],
            color=BLUE,
            alpha=0.18,
            linewidth=0,
            label="90 % of observations",
        )
        if truth is not None:
            ax.plot(
                grid,
                truth(grid.double())[:, t],
                color="black",
                linestyle=(0, (4, 2)),
                linewidth=1.2,
                label="truth",
            )
        ax.plot(grid, mean[:, t], color=BLUE, linewidth=1.8, label="predictive mean")
        ax.scatter(
            train.x[:, 0].cpu()[is_labelled],
            labels[is_labelled, t],
            s=16,
            color=RED,
            edgecolor="white",
            linewidth=0.4,
            zorder=3,
            label="training labels",
        )
        ax.set(
            xlabel="$x$",
            ylabel="$f(x)$" if problem.n_tasks == 1 else f"$f_{{{t + 1}}}(x)$",
            xlim=(low - margin, high + margin),
        )
        ax.set_title(name, loc="left")
    legend_below(figure, axes[:1], fontsize=9)
    return {"fit": figure}
