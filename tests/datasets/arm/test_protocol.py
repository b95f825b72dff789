"""The protocol of A.1.2 for labels of a multi-task table, and the published test file."""

import warnings

import numpy as np
import pytest
import torch
from support.runs.configured import component, double, make_setting, normal
from support.runs.real_files import FOLDER, find_or_skip
from torch.testing import assert_close

from components.datasets.arm.protocol import moments, observed_labels
from runner.execution.rng import Streams


def load(**keys):
    find_or_skip("sarcos/sarcos_inv_test.mat")
    dataset = component("dataset", "sarcos", split="test_file", **keys)
    return dataset.load(Streams(0), make_setting(FOLDER))


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_every_row_has_equally_many_and_likely_labels(k):
    n = 20_000
    mask = observed_labels(n, k, Streams(0).data)
    assert mask.sum(1).unique().tolist() == [k]
    p = k / 7
    error = (mask.double().mean(0) - p) / max((p * (1 - p) / n) ** 0.5, 1e-12)
    assert error.abs().max() < 4, "standard errors"
    if k == 2:  # which two: all 21 pairs equally likely
        pairs = (mask.double().T @ mask.double()).triu(1)
        frequency = pairs[pairs > 0] / n
        assert len(frequency) == 21
        assert ((frequency - 1 / 21) / (1 / 21 * 20 / 21 / n) ** 0.5).abs().max() < 4


def test_moments_use_the_observed_labels():
    y = normal(Streams(1).data, 50, 7) * torch.arange(1, 8)
    mask = observed_labels(50, 2, Streams(0).data)
    mean, std = moments(torch.where(mask, y, torch.full_like(y, 1e6)), mask)
    masked = np.ma.array(y, mask=~mask)
    assert_close(mean, torch.tensor(masked.mean(0).data))
    assert_close(std, torch.tensor(masked.std(0).data))


def test_moments_of_tasks_with_no_or_one_label():
    y = double([[1.0, 5.0, 0.0], [3.0, 9.0, 0.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    mean, std = moments(y, mask)
    assert mean.tolist() == [2.0, 5.0, 0.0]
    pooled = (2 / 3) ** 0.5  # squares 1, 1, 0 over three labels
    assert_close(std.tolist(), [1.0, pooled, pooled])
    mean, std = moments(y[:1], mask[:1])
    assert std.tolist() == [1.0, 1.0, 1.0]


def test_constant_input_is_only_centred():
    x = np.random.RandomState(0).standard_normal((30, 21))
    x[:, 3] = 2.5
    y = np.random.RandomState(1).standard_normal((30, 7))
    problem = component("dataset", "sarcos", n_train=20).make_problem(
        "toy", (x, y), (x, y), Streams(0), make_setting()
    )
    assert (problem.train.x[:, 3] == 0).all()
    assert problem.train.x.isfinite().all()


def test_real_test_file_is_standardised_without_duplicates():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = load(n_train=1000)
    assert problem.name == "sarcos-test-file"
    assert problem.train.x.shape == (1000, 21)
    assert problem.test.x.shape == (1000, 21)
    assert problem.train.mask.sum(1).unique().tolist() == [1]
    assert problem.test.y.isfinite().all()
    # Standardised labels of test rows have order one: training and test rows have the same
    # distribution.
    assert 0.7 < problem.test.y.std(0).min() <= problem.test.y.std(0).max() < 1.4
    everything = load(n_train=3449, labels_per_row=7)
    rows = torch.cat([everything.train.x, everything.test.x])
    assert len(torch.unique(rows, dim=0)) == 4_449, "no duplicate rows, none in both"


def test_linear_model_reaches_the_known_error_on_real_rows():
    """Least squares on 3,449 rows with all labels: RMSE 0.34 of a standard deviation."""
    problem = load(n_train=3449, labels_per_row=7)
    design = [
        torch.cat([b.x, torch.ones_like(b.x[:, :1])], 1) for b in (problem.train, problem.test)
    ]
    weights = torch.linalg.lstsq(design[0], problem.train.y).solution
    rmse = ((design[1] @ weights - problem.test.y) ** 2).mean(0).sqrt().mean()
    assert 0.31 < float(rmse) < 0.38
