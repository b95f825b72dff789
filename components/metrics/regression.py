"""Scores of real-valued predictions, per task and averaged over tasks (Boustati section 3.5.2)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.predictive import (
    GaussianMixture,
    PoissonMixture,
    components_of,
    is_finite,
)
from components.contracts.progress import report_each
from components.metrics.crps import crps


def mean_over_labelled(by_task: Tensor, mask: Tensor) -> Tensor:
    """The mean of a score [T] over the tasks with an observed label in mask [B, T]; NaN if there
    are none."""
    return by_task[mask.any(0).to(by_task.device)].mean()


def name_by_task(
    by_task: Mapping[str, Tensor], mask: Tensor, task_names: list[str]
) -> dict[str, float]:
    """Mean over tasks with a label of a score [T] as ``score`` and, for several tasks, each value
    as ``score/task``; mask [B, T]."""
    out = {name: float(mean_over_labelled(values, mask)) for name, values in by_task.items()}
    if len(task_names) > 1:
        out |= {
            f"{name}/{task}": float(v)
            for name, values in by_task.items()
            for task, v in zip(task_names, values, strict=True)
        }
    return out


def mean_over_rows(values: Tensor, mask: Tensor) -> Tensor:
    """The mean [T] of values [B, T] over the rows of each task with a label in mask [B, T]."""
    return torch.where(mask, values, 0.0).sum(0) / mask.to(values.dtype).sum(0)


def rmse_by_task(predictive: GaussianMixture | PoissonMixture, y: Tensor, mask: Tensor) -> Tensor:
    """RMSE [T] of the predictive mean; y, mask [B, T]."""
    y = torch.where(mask, y, 0.0)
    return mean_over_rows((predictive.mean - y) ** 2, mask).sqrt()


def coverage90_by_task(
    predictive: GaussianMixture | PoissonMixture, y: Tensor, mask: Tensor
) -> Tensor:
    """Share [T] of the labels in the central 90 % interval; y, mask [B, T]."""
    y = torch.where(mask, y, 0.0)
    cdf = predictive.cdf(y)
    below = predictive.cdf(y - 1) if isinstance(predictive, PoissonMixture) else cdf  # P(Y < y)
    return mean_over_rows(((cdf >= 0.05) & (below <= 0.95)).to(y.dtype), mask)


def scores(
    predictive: GaussianMixture | PoissonMixture, y: Tensor, mask: Tensor, task_names: list[str]
) -> dict[str, float]:
    """NLPP = −mean log p(y|x), RMSE of the mean, coverage of the central 90 % interval, mean CRPS;
    y, mask [B, T].

    A task's score is over its own observed labels with a finite prediction, NaN if there are none;
    the score without a task's name is the mean over the tasks with labels."""
    check_shape("the predicted labels", components_of(predictive), None, *y.shape)
    y = torch.where(mask, y, 0.0)  # a missing label may be NaN, and 0 · NaN is NaN
    labelled = mask
    mask = mask & is_finite(predictive)

    def nlpp() -> Tensor:
        return -mean_over_rows(predictive.log_prob(y), mask)

    def rmse() -> Tensor:
        return rmse_by_task(predictive, y, mask)

    def coverage90() -> Tensor:
        return coverage90_by_task(predictive, y, mask)

    def mean_crps() -> Tensor:
        return mean_over_rows(crps(predictive, y), mask)

    measures = {"nlpp": nlpp, "rmse": rmse, "coverage90": coverage90, "crps": mean_crps}
    by_task = {name: measures[name]() for name in report_each(measures, "score {}".format)}
    return name_by_task(by_task, labelled, task_names)
