"""One random forest per task."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from torch import Tensor, nn

from components.interfaces import Model, Rng
from components.predictive import Categorical, GaussianMixture, Predictive
from components.problems.supervised import Batch, Supervised
from components.registry import register
from components.trouble import Misfit

TINY = 1e-6  # smallest residual variance: no prediction is certain


class Forests(nn.Module):
    """T independent forests whose trees, once grown by scikit-learn, are kept and walked as tensors."""

    def __init__(self, options: dict[str, Any], problem: Supervised, smoothing: float):
        super().__init__()
        self.options, self.smoothing = options, smoothing
        self.target, self.n_tasks, self.n_classes = problem.target, problem.n_tasks, problem.n_classes

    def fit(self, batch: Batch, seed: int) -> dict[str, Tensor]:
        """Grows a forest on the observed labels of each task; trees are padded to the largest.

        Raises:
            ValueError: a task has no label at all.
        """
        x = batch.x.detach().cpu().numpy()
        kind = RandomForestRegressor if self.target == "real" else RandomForestClassifier
        forests, noise = [], []
        for t in range(self.n_tasks):
            seen = batch.mask[:, t].cpu().numpy()
            if not seen.any():
                raise Misfit(f"task {t}: no training label, a forest needs one; raise dataset.n_train")
            y = batch.y[:, t].detach().cpu().numpy()[seen]
            forest = kind(bootstrap=True, random_state=seed + t, n_jobs=1, **self.options).fit(x[seen], y)
            forests.append(forest)
            noise.append(_residual_variance(forest, x[seen], y) if self.target == "real" else 0.0)
        n_trees, values = self.options["n_estimators"], self.n_classes
        size = max(tree.tree_.node_count for forest in forests for tree in forest.estimators_)
        shape = (self.n_tasks, n_trees, size)
        child, feature = np.zeros((2, *shape), np.int64), np.zeros(shape, np.int64)
        threshold, value = np.full(shape, np.inf), np.zeros((*shape, values))
        for t, forest in enumerate(forests):
            # A class that a task never showed has no column in its forest's votes.
            columns = slice(None) if self.target == "real" else forest.classes_.astype(int)
            for k, estimator in enumerate(forest.estimators_):
                tree, here = estimator.tree_, (t, k, slice(estimator.tree_.node_count))
                leaf = tree.children_left < 0
                own = np.arange(tree.node_count)
                child[(0, *here)] = np.where(leaf, own, tree.children_left)  # a leaf leads to itself
                child[(1, *here)] = np.where(leaf, own, tree.children_right)
                feature[here] = np.where(leaf, 0, tree.feature)
                threshold[here] = np.where(leaf, np.inf, tree.threshold)
                value[here][:, columns] = tree.value[:, 0]
        depth = max(tree.tree_.max_depth for forest in forests for tree in forest.estimators_)
        like = batch.x
        return {
            "left": torch.from_numpy(child[0]).to(like.device),  # [T, K, nodes]
            "right": torch.from_numpy(child[1]).to(like.device),
            "feature": torch.from_numpy(feature).to(like.device),
            "threshold": torch.from_numpy(threshold).to(like.device),  # float64: scikit-learn compares in it
            "value": torch.from_numpy(value).to(like),  # [T, K, nodes, C]
            "noise": like.new_tensor(noise),  # residual variance, [T]
            "depth": torch.tensor(depth),
        }

    def votes(self, fitted: dict[str, Tensor], x: Tensor) -> Tensor:
        """What each tree says of x [B, D]: its leaf's mean, or class frequencies, [K, B, T, C]."""
        tasks = []
        rows = x.float().double()  # scikit-learn's trees see inputs in single precision
        for t in range(self.n_tasks):
            left, right, feature, threshold = (fitted[k][t] for k in ("left", "right", "feature", "threshold"))
            node = torch.zeros(len(left), len(x), dtype=torch.long, device=x.device)  # [K, B]
            for _ in range(int(fitted["depth"])):
                at = rows.T.gather(0, feature.gather(1, node))
                node = torch.where(at <= threshold.gather(1, node), left.gather(1, node), right.gather(1, node))
            value = fitted["value"][t]
            tasks.append(value.gather(1, node[..., None].expand(-1, -1, value.shape[-1])))
        return torch.stack(tasks, 2)

    def predict(self, fitted: dict[str, Tensor], x: Tensor) -> Predictive:
        """Real: N(mean over trees, variance over trees + residual variance); classes: smoothed mean of the votes."""
        votes = self.votes(fitted, x)
        if self.target == "real":
            mu = votes[..., 0]
            return GaussianMixture(mu.mean(0)[None], (mu.var(0, correction=0) + fitted["noise"])[None])
        counts = votes.sum(0) + self.smoothing
        return Categorical((counts / counts.sum(-1, keepdim=True)).log()[None])


def _residual_variance(forest: RandomForestRegressor, x: np.ndarray, y: np.ndarray) -> float:
    """Out-of-bag squared error less out-of-bag variance over trees, so that on average the two add up to the error."""
    n, predictions = len(x), np.stack([tree.predict(x) for tree in forest.estimators_])  # [K, n]
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
class IRF(Model):
    """iRF: an independent random forest per task, on that task's own labels alone.

    Real labels: N(m(x), v(x) + σ²), m and v the mean and variance over trees, σ² what the out-of-bag error has beyond
    v.  Classes: (Σ_k p_k(x) + α) / (K + αC) over K trees.  Has no gradient in x.

    Raises:
        ValueError: a task has no training label.

    Source: Breiman (2001); Boustati (2021), section 3.5.3."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    offers: ClassVar[frozenset[str]] = frozenset({"estimator"})
    differentiable: ClassVar[bool] = False

    trees: PositiveInt
    max_features: Annotated[float, Field(gt=0, le=1)]
    min_leaf: PositiveInt
    max_depth: PositiveInt | None
    smoothing: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> Forests:
        options = {
            "n_estimators": self.trees,
            "max_features": max(1, math.ceil(self.max_features * problem.n_inputs)),
            "min_samples_leaf": self.min_leaf,
            "max_depth": self.max_depth,
        }
        return Forests(options, problem, self.smoothing)
