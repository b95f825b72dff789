"""One random forest per task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import Categorical, GaussianMixture, Predictive
from components.contracts.problems import Batch
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import AboveZeroToOne, Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.models.estimators.forest_calibration import (
    TINY,
    Calibration,
    calibrate,
    fit_calibration,
)
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:  # slow to import
    from sklearn.ensemble import RandomForestRegressor


class Forests(nn.Module):
    """T independent forests, grown by scikit-learn, then stored and evaluated as tensors."""

    def __init__(
        self,
        options: dict[str, Any],
        problem: Supervised,
        smoothing: float,
        calibrated: Calibration,
    ):
        super().__init__()
        self.options = options
        self.smoothing = smoothing
        self.calibrated = calibrated
        self.target = problem.target
        self.n_tasks = problem.n_tasks
        self.n_classes = problem.n_classes

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """Grow a forest on the observed labels of each task; trees are padded to the largest.

        Raises:
            ConfigMismatchError: a task has no labels, or too few of a class to calibrate.
        """
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        x = batch.x.detach().cpu().numpy()
        kind = RandomForestRegressor if self.target == "real" else RandomForestClassifier
        forests = []
        noise = []
        curves = []
        for t in range(self.n_tasks):
            is_observed = batch.mask[:, t].cpu().numpy()
            if not is_observed.any():
                raise ConfigMismatchError(f"task {t}: has no training label; raise dataset.n_train")
            y = batch.y[:, t].detach().cpu().numpy()[is_observed]
            forest = kind(bootstrap=True, random_state=seed + t, n_jobs=1, **self.options)
            if self.calibrated == "none":
                forest.fit(x[is_observed], y)
            else:
                forest, curve = fit_calibration(
                    forest, x[is_observed], y, self.calibrated, self.n_classes, t
                )
                curves.append(curve)
            forests.append(forest)
            noise.append(
                _residual_variance(forest, x[is_observed], y) if self.target == "real" else 0.0
            )
        child, feature, threshold, value = self._to_arrays(forests)
        depth = max(tree.tree_.max_depth for forest in forests for tree in forest.estimators_)
        like = batch.x
        # padded with each curve's last knot
        knots = max((curve.shape[-1] for curve in curves), default=0)
        padded = [
            np.pad(c, ((0, 0), (0, 0), (0, knots - c.shape[-1])), mode="edge") for c in curves
        ]
        return {
            "left": torch.from_numpy(child[0]).to(like.device),  # [T, K, nodes]
            "right": torch.from_numpy(child[1]).to(like.device),
            "feature": torch.from_numpy(feature).to(like.device),
            # float64, as in scikit-learn's comparisons
            "threshold": torch.from_numpy(threshold).to(like.device),
            "value": torch.from_numpy(value).to(like),  # [T, K, nodes, C]
            "noise": like.new_tensor(noise),  # residual variance, [T]
            "depth": torch.tensor(depth),
            "curves": torch.from_numpy(np.stack(padded) if padded else np.zeros(0)).to(like.device),
        }

    def _to_arrays(self, forests: list[Any]) -> tuple[np.ndarray, ...]:
        """Children [2, T, K, nodes], features, thresholds [T, K, nodes] and values [T, K, nodes,
        C] of the nodes of all trees."""
        n_trees = self.options["n_estimators"]
        values = self.n_classes
        size = max(tree.tree_.node_count for forest in forests for tree in forest.estimators_)
        shape = (self.n_tasks, n_trees, size)
        child = np.zeros((2, *shape), np.int64)
        feature = np.zeros(shape, np.int64)
        threshold = np.full(shape, np.inf)
        value = np.zeros((*shape, values))
        for t, forest in enumerate(forests):
            # A class absent from a task has no column in its forest's votes.
            columns = slice(None) if self.target == "real" else forest.classes_.astype(int)
            for k, estimator in enumerate(forest.estimators_):
                tree = estimator.tree_
                tree_index = (t, k, slice(estimator.tree_.node_count))
                leaf = tree.children_left < 0
                nodes = np.arange(tree.node_count)
                # a leaf points to itself
                child[(0, *tree_index)] = np.where(leaf, nodes, tree.children_left)
                child[(1, *tree_index)] = np.where(leaf, nodes, tree.children_right)
                feature[tree_index] = np.where(leaf, 0, tree.feature)
                threshold[tree_index] = np.where(leaf, np.inf, tree.threshold)
                value[tree_index][:, columns] = tree.value[:, 0]
        return child, feature, threshold, value

    def votes(self, fitted: Fitted, x: Tensor) -> Tensor:
        """Predictions of each tree at x [B, D], [K, B, T, C].

        A prediction is the mean or the class frequencies of the leaf.
        """
        tasks = []
        rows = x.float().double()  # scikit-learn's trees use inputs in single precision
        for t in range(self.n_tasks):
            left_child, right_child, feature, threshold = (
                fitted[k][t] for k in ("left", "right", "feature", "threshold")
            )
            node = torch.zeros(len(left_child), len(x), dtype=torch.long, device=x.device)  # [K, B]
            for _ in range(int(fitted["depth"])):
                split_inputs = rows.T.gather(0, feature.gather(1, node))
                node = torch.where(
                    split_inputs <= threshold.gather(1, node),
                    left_child.gather(1, node),
                    right_child.gather(1, node),
                )
            value = fitted["value"][t]
            tasks.append(value.gather(1, node[..., None].expand(-1, -1, value.shape[-1])))
        return torch.stack(tasks, 2)

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Predictive:
        """Real: N(mean over trees, variance over trees + residual variance); classes: smoothed mean
        of the calibrated votes."""
        votes = self.votes(fitted, x)
        if self.target == "real":
            mu = votes[..., 0]
            return GaussianMixture(
                mu.mean(0)[None], (mu.var(0, correction=0) + fitted["noise"])[None]
            )
        counts = votes.sum(0)
        if self.calibrated != "none":
            counts = len(votes) * calibrate(fitted["curves"], votes.mean(0), self.calibrated)
        counts = counts + self.smoothing
        return Categorical((counts / counts.sum(-1, keepdim=True)).log()[None])


def _residual_variance(forest: RandomForestRegressor, x: np.ndarray, y: np.ndarray) -> float:
    """Out-of-bag squared error minus out-of-bag variance over trees, so that their sum matches the
    error on average."""
    n = len(x)
    predictions = np.stack([tree.predict(x) for tree in forest.estimators_])  # [K, n]
    out = np.ones_like(predictions, dtype=bool)
    for k, rows in enumerate(forest.estimators_samples_):
        out[k, rows] = False
    count = out.sum(0)
    use = count >= 2
    if n < 3 or not use.any():
        return float(max(y.var(), TINY))
    mean = (predictions * out).sum(0)[use] / count[use]
    variance = (((predictions[:, use] - mean) ** 2) * out[:, use]).sum(0) / count[use]
    return float(max(((y[use] - mean) ** 2 - variance).mean(), TINY))


@register("model", "irf")
class IRF(Model[Supervised, Forests]):
    """iRF: an independent random forest per task, trained only on the labels of that task.

    Real labels: N(m(x), v(x) + σ²), where m and v are the mean and variance over trees and
    σ² is the excess of the out-of-bag error over v. Classes: (Σ_k p_k(x) + α) / (K + αC)
    over K trees. The model has no gradient in x.

    ``calibrated`` replaces Σ_k p_k(x) by K q_c(x), q normalised: each class has its own one-vs-rest
    curve from p̄ = Σ_k p_k/K to q, fitted to out-of-fold p̄ of 5 folds: q = 1/(1 + exp(a p̄ + b))
    (sigmoid, Platt) or the nondecreasing step function closest to the labels (isotonic).
    Calibration does not change the trees.

    Raises:
        ConfigMismatchError: a task has no training label; calibration of real labels, or of a
            class with fewer labels than folds.

    Source: Breiman (2001); Boustati (2021), section 3.5.3; Platt (1999), section 2;
    Zadrozny and Elkan (2002), section 3.
    """

    requires = SUPERVISED
    differentiable = False

    trees: PositiveInt
    max_features: AboveZeroToOne
    min_leaf: PositiveInt
    max_depth: PositiveInt | None
    smoothing: PositiveFloat
    calibrated: Calibration

    def build(self, problem: Supervised, rng: Rng) -> Forests:
        if self.calibrated != "none" and problem.target == "real":
            raise ConfigMismatchError(
                f"model.calibrated: {self.calibrated} calibrates classes, but labels of {problem.name} are real; set it to none"
            )
        options = {
            "n_estimators": self.trees,
            "max_features": max(1, math.ceil(self.max_features * problem.n_inputs)),
            "min_samples_leaf": self.min_leaf,
            "max_depth": self.max_depth,
        }
        return Forests(options, problem, self.smoothing, self.calibrated)
