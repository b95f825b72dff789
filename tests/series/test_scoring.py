"""Scores of one-step predictions compared with literal formulas."""

import numpy as np
import pytest
import torch
from support.runs.configured import generator
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.series.scoring import PredictionScore

R = 3
T = 9


@pytest.fixture
def series():
    g = generator(3)
    y = torch.randn(R, T, 2, generator=g).double() * 5 + torch.tensor([-8.0, 20.0])
    return y, y + torch.randn(R, T, 2, generator=g).double()


def literal(y, predicted, weights):
    errors = np.median(np.abs(predicted - y), axis=0)
    medians = np.median(y, axis=0)
    if weights == "equal":
        return errors.mean()
    if weights == "inverse_median":
        return np.average(errors, weights=1 / np.abs(medians))
    w = medians / medians.sum()  # the released code
    return np.average(errors, weights=1 / w)


@pytest.mark.parametrize("weights", ["equal", "inverse_median", "as_released"])
def test_replicates_are_scored_on_their_own_observations(series, weights):
    y, predicted = series
    scores = PredictionScore(weights=weights)(y, predicted)
    expected = [literal(y[r].numpy(), predicted[r].numpy(), weights) for r in range(R)]
    assert_close(scores, torch.tensor(expected).double())


def test_weights_of_opposite_sign_are_distinguished(series):
    y, predicted = series
    signed, absolute = (
        PredictionScore(weights=w)(y, predicted) for w in ("as_released", "inverse_median")
    )
    assert (signed - absolute).abs().min() > 1e-3


def test_replicates_can_share_one_sequence(series):
    y, predicted = series
    reference = y[1] + 1
    scores = PredictionScore(against=reference, weights="inverse_median")(y, predicted)
    expected = [
        literal(reference.numpy(), predicted[r].numpy(), "inverse_median") for r in range(R)
    ]
    assert_close(scores, torch.tensor(expected).double())


def test_late_predictions_are_compared_with_the_previous_value(series):
    y, predicted = series
    scores = PredictionScore(late=True)(y, predicted)
    expected = [literal(y[r, :-1].numpy(), predicted[r, 1:].numpy(), "equal") for r in range(R)]
    assert_close(scores, torch.tensor(expected).double())
    assert PredictionScore(late=True)(y, predicted[:, :1]) is None


def test_weights_use_the_whole_sequence_from_the_start(series):
    y, predicted = series
    scores = PredictionScore(weights="inverse_median")(y, predicted[:, :4])
    weights = 1 / np.abs(np.median(y[0].numpy(), axis=0))
    errors = np.median(np.abs(predicted[0, :4] - y[0, :4]).numpy(), axis=0)
    assert float(scores[0]) == pytest.approx(np.average(errors, weights=weights))


def test_missing_observations_are_left_out(series):
    y, predicted = series
    gaps = y.clone()
    gaps[0, 2] = torch.nan
    scores = PredictionScore(weights="inverse_median")(gaps, predicted)
    keep = [t for t in range(T) if t != 2]
    assert float(scores[0]) == pytest.approx(
        literal(y[0, keep].numpy(), predicted[0, keep].numpy(), "inverse_median")
    )


def test_zero_median_is_an_error_that_names_the_key(series):
    y, _ = series
    y[1, :, 1] = 0.0
    with pytest.raises(
        ConfigMismatchError, match=r"dimension 2 is 0; set dataset.score_weights=equal"
    ):
        PredictionScore(weights="inverse_median").check(y)
    PredictionScore().check(y)
