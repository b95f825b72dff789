"""Objectives of a sweep: notation, and values returned by jobs."""

from __future__ import annotations

import pytest

from runner.catalogue.settings import OBJECTIVES_VARIABLE
from runner.compose.compose import compose_in_full
from runner.errors import ConfigError
from runner.sweep.goal import SearchProperties, describe_objectives, search_facts
from runner.sweep.objectives import DIRECTIONS, Objective, several, single, values

TWO = [{"metric": "accuracy", "direction": "maximize"}, {"metric": "nlpp", "direction": "minimize"}]


def test_several_objectives_are_listed_with_their_directions():
    assert several(TWO, None) == [Objective("accuracy", "maximize"), Objective("nlpp", "minimize")]
    assert several([{"metric": objective["metric"]} for objective in TWO], None) == several(
        TWO, None
    )
    assert several(None, "accuracy") == []


def test_job_returns_means_over_replicates(monkeypatch):
    result = {"nlpp": [1.0, 2.0], "accuracy": [0.5, 0.75]}
    monkeypatch.delenv(OBJECTIVES_VARIABLE, raising=False)
    assert values(result, None) == 1.5
    assert values(result, "accuracy") == 0.625
    with pytest.raises(ConfigError, match=r"objective=accurcy: .* did you mean accuracy"):
        values(result, "accurcy")
    monkeypatch.setenv(OBJECTIVES_VARIABLE, "accuracy|nlpp")
    assert values(result, None) == [0.625, 1.5]
    monkeypatch.setenv(OBJECTIVES_VARIABLE, "accuracy|nlp")
    with pytest.raises(ConfigError, match=r"hydra.sweeper.objectives: nlp: unknown metric"):
        values(result, None)


HIGHER = """
accuracy mean_robust_accuracy robust_accuracy/eps=0.1 robust_accuracy/fgsm/eps=0.10 log_likelihood/0.5 one_ahead/log_score
"""
LOWER = "attack_success/eps=0.3 nlpp/a one_ahead/mape"


@pytest.mark.parametrize("score", [*HIGHER.split(), *LOWER.split()])
def test_direction_follows_from_the_name_of_the_score(score):
    direction, other = DIRECTIONS if score in LOWER.split() else reversed(DIRECTIONS)
    assert single(score, None) == Objective(score, direction)
    assert single(score, None).contradiction is None
    assert single(score, other).direction == other  # the user's choice wins, with a warning
    assert "but the search is set to" in single(score, other).contradiction


def list_objectives(*words: str) -> SearchProperties:
    return search_facts(compose_in_full(list(words)))


@pytest.mark.parametrize(
    ("words", "objective", "line"),
    [
        (
            ["+experiment=digits_fgsm"],
            "accuracy",
            "TEST rows, which a search should not use; set validation=0.2 to use held-out training rows",
        ),
        (
            ["+experiment=digits_fgsm", "validation=0.25"],
            "accuracy",
            "; scored on held-out training rows (share 0.25)",
        ),
        (["+experiment=multitask_toy"], "nlpp", "nlpp: minimize"),
        (
            ["+experiment=friend_or_foe"],
            "reward",
            "reward: maximize (default for game problems; set objective= to change it)",
        ),
        (
            ["+experiment=mog"],
            "ksd",
            "ksd: minimize (default for density problems; set objective= to change it)",
        ),
        (
            ["+experiment=wiener_velocity"],
            "nmse",
            "nmse: minimize (default for sequence problems; ",
        ),
        (["+experiment=structural_co2"], "log_score", "scored on the held-out test times"),
    ],
)
def test_first_line_describes_objective_and_rows(words, objective, line):
    goal = list_objectives(*words)
    assert goal.default_objective == objective
    assert line in describe_objectives([single(objective, None)], True, goal)[0]


def test_unknown_score_is_refused_before_the_first_trial():
    goal = list_objectives("+experiment=digits_fgsm")
    goal.check([single("robust_accuracy/eps=0.1", None)])
    with pytest.raises(ConfigError, match=r"objective=reward: .* supervised problems"):
        goal.check([single("reward", None)])
