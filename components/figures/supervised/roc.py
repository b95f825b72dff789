"""Receiver operating characteristic of a binary problem for each task."""

from __future__ import annotations

import torch

from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical, is_finite
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import Figures, colour_of, legend_above, new_figure
from components.figures.supervised.tasks import name_tasks
from components.metrics.classification import roc_auc, roc_counts


def roc(problem: LabelledProblem, posterior: Predicts, rng: Rng) -> Figures:
    """True against false positive rate on the test rows, one curve per task with its area.

    The area is in the legend.  Nothing is drawn unless labels are binary; a task with test labels
    of a single class is omitted, and without other tasks nothing is drawn.
    """
    if problem.target != "binary":
        return {}
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, problem.test.x, rng)
        assert isinstance(predictive, Categorical)
        p = predictive.probs[..., 1].cpu()  # [B, T]
    y = problem.test.y.cpu()
    mask = (problem.test.mask & is_finite(predictive)).cpu()
    figure, (ax,) = new_figure(width=4.3, height=4.6)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.9, linestyle=(0, (4, 2)))
    dashes = ["-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1))]
    for t, name in enumerate(name_tasks(problem)):
        label = y[mask[:, t], t]
        score = p[mask[:, t], t]
        if label.unique().numel() < 2:
            continue
        counts = roc_counts(label, score)
        ax.plot(
            *counts / counts[:, -1:],
            color=colour_of(t),
            linestyle=dashes[t % len(dashes)],
            linewidth=1.8,
            label=f"{name}: AUC {roc_auc(label, score):.2f}",
        )
    if len(ax.lines) == 1:  # the diagonal
        return {}
    ax.set(
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
        xlabel="false positive rate",
        ylabel="true positive rate",
    )
    ax.set_title(f"all {len(y):,} test rows", fontsize=9.5)
    legend_above(ax)
    return {"roc": figure}
