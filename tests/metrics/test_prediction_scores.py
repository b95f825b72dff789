"""Scores of predictions, label by label, where some labels are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import F64, generator

from components.contracts.predictive import Categorical, GaussianMixture
from components.metrics import classification, regression
from components.metrics.crps import crps

TASKS = ["a", "b"]


def test_scores_of_real_labels_are_over_those_that_are_there():
    g = generator(0)
    mu, v = (
        torch.randn(3, 40, 2, generator=g, dtype=F64),
        0.2 + torch.rand(3, 40, 2, generator=g, dtype=F64),
    )
    y = 1.5 * torch.randn(40, 2, generator=g, dtype=F64)
    mask = torch.rand(40, 2, generator=g) < 0.6
    found = regression.scores(GaussianMixture(mu, v), torch.where(mask, y, torch.nan), mask, TASKS)
    by_task: dict[str, list[float]] = {"nlpp": [], "rmse": [], "coverage90": [], "crps": []}
    for t in range(2):
        nlpp, squares, inside = [], [], []
        for b in range(40):
            if mask[b, t]:
                parts = [stats.norm(mu[s, b, t].item(), math.sqrt(v[s, b, t])) for s in range(3)]
                label = y[b, t].item()
                nlpp.append(-math.log(np.mean([p.pdf(label) for p in parts])))
                squares.append((np.mean([p.mean() for p in parts]) - label) ** 2)
                inside.append(0.05 <= np.mean([p.cdf(label) for p in parts]) <= 0.95)
        by_task["nlpp"].append(float(np.mean(nlpp)))
        by_task["rmse"].append(float(np.sqrt(np.mean(squares))))
        by_task["coverage90"].append(float(np.mean(inside)))
        row = GaussianMixture(mu[:, :, t, None], v[:, :, t, None])
        by_task["crps"].append(float(crps(row, y[:, t, None])[mask[:, t]].mean()))
    assert 0.3 < by_task["coverage90"][0] < 0.9
    for metric, values in by_task.items():
        # of tasks of unequal size, each counts as one
        assert found[metric] == pytest.approx(np.mean(values))
        for task, value in zip(TASKS, values, strict=True):
            assert found[f"{metric}/{task}"] == pytest.approx(value)


def test_scores_of_classes_are_over_those_that_are_there_and_the_area_is_that_of_class_1():
    g = generator(1)
    y = torch.randint(2, (60, 2), generator=g)
    mask = torch.rand(60, 2, generator=g) < 0.7
    pull = torch.stack(
        [torch.zeros(60, 2, dtype=F64), 1.5 * (2 * y - 1).to(F64)], -1
    )  # class 1 is told apart, well but not wholly
    logits = pull + torch.randn(2, 60, 2, 2, generator=g, dtype=F64)
    seen = torch.where(mask, y, -1)
    found = classification.scores(Categorical(logits), seen, mask, TASKS)
    for t in range(2):
        p = logits.softmax(-1).mean(0)[:, t, 1]
        ones = [p[b].item() for b in range(60) if seen[b, t] == 1]
        zeros = [p[b].item() for b in range(60) if seen[b, t] == 0]
        auc = np.mean([(a > b) + 0.5 * (a == b) for a in ones for b in zeros])
        assert auc > 0.7
        assert found[f"auc/{TASKS[t]}"] == pytest.approx(auc)
        nlpp = np.mean([-math.log(q) for q in ones] + [-math.log(1 - q) for q in zeros])
        assert found[f"nlpp/{TASKS[t]}"] == pytest.approx(nlpp)
        right = np.mean([q > 0.5 for q in ones] + [q < 0.5 for q in zeros])
        assert found[f"accuracy/{TASKS[t]}"] == pytest.approx(right)
    assert found["auc"] == pytest.approx((found["auc/a"] + found["auc/b"]) / 2)


def test_calibration_error_is_the_sum_over_bins_written_out():
    confidence = torch.tensor([0.05, 0.35, 0.36, 0.37, 0.95, 1.0], dtype=F64)
    correct = torch.tensor([True, False, True, False, True, False])
    bins = [[0], [1, 2, 3], [4, 5]]  # of 15: the first, the sixth, the last, which holds 1 too
    exact = sum(
        abs(
            sum(float(correct[i]) for i in b) / len(b)
            - sum(float(confidence[i]) for i in b) / len(b)
        )
        * len(b)
        / 6
        for b in bins
    )
    assert float(classification.expected_calibration_error(confidence, correct)) == pytest.approx(
        exact
    )
