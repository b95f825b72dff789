"""Scores of predictions, label by label, with some missing labels."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as sklearn_metrics
from support.runs.configured import F64, double, generator, normal, uniform

from components.contracts.predictive import Categorical, GaussianMixture
from components.metrics import classification, regression
from components.metrics.crps import crps

TASKS = ["a", "b"]


def test_scores_of_real_labels_use_only_observed_ones():
    g = generator(0)
    mu = normal(g, 3, 40, 2)
    v = 0.2 + uniform(g, 3, 40, 2)
    y = 1.5 * normal(g, 40, 2)
    mask = torch.rand(40, 2, generator=g) < 0.6
    scores = regression.scores(GaussianMixture(mu, v), torch.where(mask, y, torch.nan), mask, TASKS)
    by_task = {"nlpp": [], "rmse": [], "coverage90": [], "crps": []}
    for t in range(2):
        observed = mask[:, t]
        parts = stats.norm(mu[:, observed, t], v[:, observed, t].sqrt())
        label = y[observed, t].numpy()
        cdf = parts.cdf(label).mean(0)
        by_task["nlpp"].append(-np.log(parts.pdf(label).mean(0)).mean())
        by_task["rmse"].append(np.sqrt(((parts.mean().mean(0) - label) ** 2).mean()))
        by_task["coverage90"].append(((cdf >= 0.05) & (cdf <= 0.95)).mean())
        row = GaussianMixture(mu[:, observed, t, None], v[:, observed, t, None])
        by_task["crps"].append(float(crps(row, y[observed, t, None]).mean()))
    assert 0.3 < by_task["coverage90"][0] < 0.9
    for metric, values in by_task.items():
        # tasks of unequal size have equal weight
        assert scores[metric] == pytest.approx(np.mean(values))
        for task, value in zip(TASKS, values, strict=True):
            assert scores[f"{metric}/{task}"] == pytest.approx(value)


def test_scores_of_classes_use_only_observed_labels():
    g = generator(1)
    y = torch.randint(2, (60, 2), generator=g)
    mask = torch.rand(60, 2, generator=g) < 0.7
    # class 1 is separated well but not perfectly
    pull = torch.stack([torch.zeros(60, 2, dtype=F64), 1.5 * (2 * y - 1).to(F64)], -1)
    logits = pull + normal(g, 2, 60, 2, 2)
    labels = torch.where(mask, y, -1)
    scores = classification.scores(Categorical(logits), labels, mask, TASKS)
    for t in range(2):
        observed = mask[:, t]
        p = logits.softmax(-1).mean(0)[observed, t, 1]
        label = y[observed, t]
        assert sklearn_metrics.roc_auc_score(label, p) > 0.7
        exact = {
            "auc": sklearn_metrics.roc_auc_score(label, p),
            "nlpp": sklearn_metrics.log_loss(label, p),
            "accuracy": sklearn_metrics.accuracy_score(label, p > 0.5),
        }
        assert {name: scores[f"{name}/{TASKS[t]}"] for name in exact} == pytest.approx(exact)
    assert scores["auc"] == pytest.approx((scores["auc/a"] + scores["auc/b"]) / 2)


def test_area_under_the_curve_equals_scikit_learn():
    g = generator(2)
    for draw in range(200):
        label = torch.randint(2, (3 + draw,), generator=g)
        label[:2] = torch.tensor([0, 1])
        # one to ten distinct scores are tied, and every third draw has none
        score = torch.rand(len(label), generator=g, dtype=F64 if draw % 2 else torch.float32)
        score = (score * (draw % 10)).round() if draw % 3 else score
        assert classification.roc_auc(label, score) == sklearn_metrics.roc_auc_score(label, score)


def test_calibration_error_equals_the_sum_over_bins():
    confidence = double([0.05, 0.35, 0.36, 0.37, 0.95, 1.0])
    correct = torch.tensor([True, False, True, False, True, False])
    # three of 15 bins: the first, the sixth, and the last, which includes 1
    bins = [[0], [1, 2, 3], [4, 5]]
    gap = correct.double() - confidence
    exact = sum(abs(float(gap[b].sum())) for b in bins) / 6
    error = classification.expected_calibration_error(confidence, correct)
    assert float(error) == pytest.approx(exact)
