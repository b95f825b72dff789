"""What a sweep optimises: how it is written, and what a job hands back."""

from __future__ import annotations

import pytest

from runner.mistakes import ConfigError
from runner.sweep.objectives import METRICS, Objective, several, values

TWO = [{"metric": "accuracy", "direction": "maximize"}, {"metric": "nlpp", "direction": "minimize"}]


def test_several_are_listed_with_their_directions():
    assert several(TWO, None) == [Objective("accuracy", "maximize"), Objective("nlpp", "minimize")]
    assert several(None, "accuracy") == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["accuracy"], r"hydra.sweeper.objectives=\['accuracy'\]: write \[\{metric: accuracy, direction: maximize\}"),
        ([TWO[0] | {"direction": "up"}, TWO[1]], "direction: up: not one of minimize | maximize"),
        ([TWO[0]], "at least two different metrics; of one, write objective=accuracy"),
        ([TWO[0], TWO[0]], "at least two different metrics"),
    ],
)
def test_mistakes(given, message):
    with pytest.raises(ConfigError, match=message):
        several(given, None)


def test_a_job_hands_back_means_over_replicates(monkeypatch):
    result = {"nlpp": [1.0, 2.0], "accuracy": [0.5, 0.75]}
    monkeypatch.delenv(METRICS, raising=False)
    assert values(result, None) == 1.5
    assert values(result, "accuracy") == 0.625
    with pytest.raises(ConfigError, match="objective=accurcy: no such metric, did you mean accuracy"):
        values(result, "accurcy")
    monkeypatch.setenv(METRICS, "accuracy|nlpp")
    assert values(result, None) == [0.625, 1.5]
    monkeypatch.setenv(METRICS, "accuracy|nlp")
    with pytest.raises(ConfigError, match=r"hydra.sweeper.objectives: nlp: no such metric"):
        values(result, None)
