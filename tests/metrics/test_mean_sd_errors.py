"""Errors of means and standard deviations in the reference's own scale."""

import pytest
import torch
from support.runs.configured import double
from support.targets.known_targets import F64

from components.metrics.reference_moments import mean_sd_errors
from components.posteriors.draws import Draws

MEAN = double([1.0, -2.0])
SD = double([0.5, 3.0])


def errors(values, log_weights=None):
    draws = Draws(values, values[:, 0], ["a", "b"], log_weights=log_weights)
    return mean_sd_errors(draws, MEAN, SD.square() + MEAN.square())


def test_error_is_the_larger_of_both_over_the_reference_sd():
    values = double([[[1.0, 0.0], [2.0, 8.0]], [[3.0, 2.0], [4.0, 6.0]]])
    actual = errors(values)
    for i, column in enumerate(values.flatten(0, 1).T.tolist()):
        m = sum(column) / 4
        s = (sum((x - m) ** 2 for x in column) / 4) ** 0.5
        expected = max(abs(m - float(MEAN[i])), abs(s - float(SD[i]))) / float(SD[i])
        assert float(actual[i]) == pytest.approx(expected)


def test_error_of_too_wide_draws_is_not_hidden():
    values = MEAN + SD * torch.randn(4, 5000, 2, dtype=F64)
    wide = MEAN + 1000 * (values - MEAN)
    assert errors(values).max() < 0.1
    assert errors(wide).min() == pytest.approx(999, rel=0.05)


def test_weights_change_the_error():
    values = torch.stack([MEAN - SD, MEAN + SD, MEAN + 100 * SD])[None]
    weights = double([[0.5, 0.5, 1e-300]])
    assert errors(values, weights.log()).max() < 1e-6
    assert errors(values).max() > 10


def test_constant_reference_has_no_error():
    values = torch.randn(1, 10, 2, dtype=F64)
    draws = Draws(values, values[:, 0], ["a", "b"])
    assert mean_sd_errors(draws, MEAN, MEAN.square()).isnan().all()
