"""Scores in cases where errors could be silent: different shapes, zero signals, and tasks without
labels."""

import math

import pytest
import torch
from support.runs.configured import F64

from components.contracts.checks import check_same_shape, check_shape
from components.contracts.predictive import Categorical, GaussianMixture
from components.errors import ConfigMismatchError
from components.metrics import classification, regression
from components.metrics.undefined import stack_scores
from components.metrics.unlabelled.likelihood_bounds import exp_or_infinity
from components.series.scores import filtering, forecasts


def law(*shape):
    return GaussianMixture(torch.zeros(shape, dtype=F64), torch.ones(shape, dtype=F64))


def test_different_shapes_are_named():
    check_shape("x", torch.zeros(3, 4), None, 4)
    check_same_shape("x", torch.zeros(3, 4), torch.zeros(1, 4))  # one truth for all replicates
    with pytest.raises(
        ConfigMismatchError, match=r"draws .* 3 × 4, .* data .* 3 × 5; choose a model"
    ):
        check_shape("the draws", torch.zeros(3, 4), 3, 5)
    for given in (torch.zeros(3), torch.zeros(3, 1), torch.zeros(2, 4)):
        with pytest.raises(ConfigMismatchError):
            check_same_shape("x", given, torch.zeros(3, 4))


@pytest.mark.parametrize(
    "score",
    [
        lambda: filtering.nmse(torch.ones(1, 5, 2), torch.ones(1, 5, 1)),
        lambda: filtering.coverage(torch.ones(1, 5, 2), torch.ones(1, 5, 1), torch.ones(1, 5, 1)),
        lambda: filtering.median_absolute_error(torch.ones(1, 5, 2), torch.ones(1, 5, 1)),
        lambda: regression.scores(
            law(3, 5, 1), torch.zeros(5, 2, dtype=F64), torch.ones(5, 2, dtype=torch.bool), []
        ),
        lambda: classification.scores(
            Categorical(torch.zeros(1, 5, 1, 2)),
            torch.zeros(5, 2).long(),
            torch.ones(5, 2).bool(),
            [],
        ),
        lambda: forecasts.of_numbers(law(3, 1, 1), torch.zeros(4, 1, dtype=F64)),
    ],
)
def test_shapes_are_not_broadcast_before_scoring(score):
    with pytest.raises(ConfigMismatchError, match=r"but the data have shape .*; choose a model"):
        score()


def test_zero_state_is_left_out_of_the_mean():
    states = torch.stack([torch.zeros(4), torch.ones(4)], 1).unsqueeze(0)  # [1, 4, 2]
    by_state = filtering.nmse(states, torch.full((1, 4, 2), 0.5))
    assert by_state.tolist() == [[math.inf, 0.25]]
    assert filtering.mean_over_states(by_state).tolist() == [0.25]
    assert filtering.mean_over_states(by_state[:, :1]).tolist() == [math.inf]
    # divergence is an error
    assert filtering.nmse(states, torch.full((1, 4, 2), math.nan)).isnan().all()


def test_means_use_only_tasks_with_labels():
    mask = torch.tensor([[True, False]] * 3)
    scores = regression.scores(law(1, 3, 2), torch.full((3, 2), 2.0, dtype=F64), mask, ["a", "b"])
    assert scores["rmse"] == scores["rmse/a"] == 2.0
    assert math.isnan(scores["rmse/b"])
    logits = torch.tensor([0.0, 1.0]).expand(1, 3, 2, 2)
    y = torch.tensor([[1, 0], [0, 0], [1, 0]])
    scores = classification.scores(Categorical(logits), y, mask, ["a", "b"])
    assert scores["accuracy"] == scores["accuracy/a"] == pytest.approx(2 / 3)
    assert all(math.isfinite(scores[name]) for name in ("accuracy", "nlpp", "ece", "auc"))
    assert all(math.isnan(scores[f"{name}/b"]) for name in ("accuracy", "nlpp", "ece", "auc"))


def test_perplexity_beyond_the_largest_number_is_infinite():
    assert exp_or_infinity(1.0) == math.e
    assert exp_or_infinity(1e4) == math.inf


def test_score_missing_in_one_replicate_is_left_out():
    stacked = stack_scores([{"a": 1.0}, {"a": 2.0, "b": 3.0}])
    assert stacked["a"].tolist() == [1.0, 2.0]
    assert math.isnan(stacked["b"][0])
    assert stacked["b"][1] == 3.0
