"""Scores of class predictions, per task and averaged over tasks."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.predictive import Categorical
from components.contracts.progress import report_each
from components.metrics.regression import name_by_task


def expected_calibration_error(confidence: Tensor, correct: Tensor, n_bins: int = 15) -> Tensor:
    """ECE = Σ_b n_b/n |accuracy_b − confidence_b| over equal-width bins of confidence.

    Source: Guo et al. (2017), eq. (3)."""
    bins = (confidence * n_bins).long().clamp(0, n_bins - 1)
    gap = torch.zeros(n_bins, dtype=confidence.dtype, device=confidence.device)
    gap.index_add_(0, bins, correct.to(confidence.dtype) - confidence)
    return gap.abs().sum() / confidence.numel()


def roc_counts(label: Tensor, score: Tensor) -> NDArray[np.float64]:
    """Numbers of false and true positives above each of K distinct scores, [2, K + 1].

    Args: label [B], 0 or 1; score [B], finite.

    Source: Fawcett (2006), algorithm 1."""
    _, group = np.unique(-score.cpu().numpy(), return_inverse=True)
    y = label.cpu().numpy()
    return np.stack([np.bincount(group + 1, is_counted) for is_counted in (1 - y, y)]).cumsum(1)


def roc_auc(label: Tensor, score: Tensor) -> float:
    """Area under the ROC curve of labels of both classes, by the trapezoidal rule.

    Arguments as in ``roc_counts``.  Points inside a straight line are omitted, as in scikit-learn,
    so that both round equally."""
    counts = roc_counts(label, score)
    corners = np.flatnonzero(np.diff(counts[:, 1:], 2).any(0)) + 2
    false, true = counts[:, [0, 1, *corners, -1]] / counts[:, -1:]
    return float(np.trapezoid(true, false))


def scores(
    predictive: Categorical, y: Tensor, mask: Tensor, task_names: list[str]
) -> dict[str, float]:
    """Accuracy, NLPP, ECE, and ROC-AUC for binary labels; y, mask [B, T].

    Scores without a task's name are means over the tasks with an observed label.  A label without a
    finite prediction counts as wrong in the accuracy; the other scores omit it."""
    check_shape("the predicted labels", predictive.logits, None, *y.shape, None)
    probs = predictive.probs
    log_prob = predictive.log_prob(y.clamp_min(0))
    by_task: dict[str, list[float]] = {"accuracy": [], "nlpp": [], "ece": []}
    binary = probs.shape[-1] == 2
    if binary:
        by_task["auc"] = []
    for t in report_each(range(y.shape[1]), lambda t: f"scores of task {t + 1}"):
        is_observed = mask[:, t]
        p = probs[is_observed, t]
        label = y[is_observed, t]
        confidence, guess = p.max(-1)
        finite = confidence.isfinite()
        correct = (guess == label) & finite
        by_task["accuracy"].append(float(correct.double().mean()))
        p = p[finite]
        label = label[finite]
        correct = correct[finite]
        by_task["nlpp"].append(float(-log_prob[is_observed, t][finite].mean()))
        by_task["ece"].append(float(expected_calibration_error(confidence[finite], correct)))
        if binary:
            # with a single class the area is undefined: NaN rather than 0.5
            both = label.unique().numel() == 2
            by_task["auc"].append(roc_auc(label, p[:, 1]) if both else float("nan"))
    each = {name: torch.tensor(values, dtype=torch.float64) for name, values in by_task.items()}
    return name_by_task(each, mask, task_names)
