"""Calibration of the votes of a forest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from components.errors import ConfigMismatchError

if TYPE_CHECKING:  # slow to import
    from sklearn.ensemble import RandomForestClassifier


TINY = 1e-6  # smallest residual variance, so that predictions are never certain
FOLDS = 5  # of the cross-validation for calibration
Calibration = Literal["none", "sigmoid", "isotonic"]


def fit_calibration(
    forest: RandomForestClassifier,
    x: np.ndarray,
    y: np.ndarray,
    method: Calibration,
    n_classes: int,
    task: int,
) -> tuple[RandomForestClassifier, np.ndarray]:
    """The forest of all rows, and the calibration curve of each class from votes to probability,
    fitted to out-of-fold votes: (a, b) of a sigmoid [C, 2, 1], or knots of an isotonic regression
    [C, 2, n].

    Raises:
        ConfigMismatchError: a class has fewer rows than folds.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2 or counts.min() < FOLDS:
        raise ConfigMismatchError(
            f"model.calibrated: task {task} has a class with "
            f"{counts.min() if len(classes) > 1 else 0} training labels, but needs {FOLDS}; raise "
            "dataset.n_train or set it to none"
        )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=forest.random_state)
    (fitted,) = (
        CalibratedClassifierCV(forest, method=method, cv=folds, ensemble=False)
        .fit(x, y)
        .calibrated_classifiers_
    )
    if method == "sigmoid":
        curves = [np.array([[c.a_], [c.b_]]) for c in fitted.calibrators]
        other = [np.array([[c.a_], [-c.a_ - c.b_]]) for c in fitted.calibrators]  # of 1 − p
        never = np.array([[0.0], [np.inf]])
    else:
        curves = [np.stack([c.X_thresholds_, c.y_thresholds_]) for c in fitted.calibrators]
        other = [1 - curve[:, ::-1] for curve in curves]
        never = np.zeros((2, 1))
    if len(classes) == 2:  # one curve, of the second class, serves both classes
        curves = [other[0], curves[0]]
    knots = max(curve.shape[1] for curve in curves)
    out = np.stack([np.pad(never, ((0, 0), (0, knots - 1)), mode="edge")] * n_classes)
    for c, curve in zip(classes.astype(int), curves, strict=True):
        out[c] = np.pad(curve, ((0, 0), (0, knots - curve.shape[1])), mode="edge")
    return fitted.estimator, out


def calibrate(curves: Tensor, votes: Tensor, method: Calibration) -> Tensor:
    """Probabilities [B, T, C] of mean votes [B, T, C]: each class by its curve [T, C, 2, n], then
    normalised."""
    v = votes.double().permute(1, 2, 0)  # [T, C, B]
    first, second = curves.unbind(2)  # [T, C, n]
    if method == "sigmoid":
        p = torch.sigmoid(-(first * v + second))
    else:
        knot = torch.searchsorted(first.contiguous(), v.contiguous()).clamp_max(first.shape[-1] - 1)
        previous_knot = (knot - 1).clamp_min(0)
        x0, x1, y0, y1 = (
            line.gather(-1, i) for line in (first, second) for i in (previous_knot, knot)
        )
        weight = ((v - x0) / (x1 - x0).clamp_min(torch.finfo(v.dtype).tiny)).clamp(0, 1)
        p = y0 + weight * (y1 - y0)
    total = p.sum(1, keepdim=True)
    p = torch.where(total > 0, p / total.clamp_min(torch.finfo(v.dtype).tiny), 1 / p.shape[1])
    return p.permute(2, 0, 1).to(votes)
