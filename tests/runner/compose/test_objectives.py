"""What a sweep optimises: how it is written, and what a job hands back."""

from __future__ import annotations

import pytest

from runner.catalogue.settings import OBJECTIVES_VARIABLE
from runner.compose.compose import compose_in_full
from runner.errors import ConfigError
from runner.sweep.goal import SearchProperties, describe_objectives, search_facts
from runner.sweep.objectives import DIRECTIONS, Objective, several, single, values

TWO = [{"metric": "accuracy", "direction": "maximize"}, {"metric": "nlpp", "direction": "minimize"}]


def test_several_are_listed_with_their_directions():
    assert several(TWO, None) == [Objective("accuracy", "maximize"), Objective("nlpp", "minimize")]
    assert several([{"metric": one["metric"]} for one in TWO], None) == several(TWO, None)
    assert several(None, "accuracy") == []


def test_a_job_hands_back_means_over_replicates(monkeypatch):
    result = {"nlpp": [1.0, 2.0], "accuracy": [0.5, 0.75]}
    monkeypatch.delenv(OBJECTIVES_VARIABLE, raising=False)
    assert values(result, None) == 1.5
    assert values(result, "accuracy") == 0.625
    with pytest.raises(
        ConfigError, match="objective=accurcy: no such metric, did you mean accuracy"
    ):
        values(result, "accurcy")
    monkeypatch.setenv(OBJECTIVES_VARIABLE, "accuracy|nlpp")
    assert values(result, None) == [0.625, 1.5]
    monkeypatch.setenv(OBJECTIVES_VARIABLE, "accuracy|nlp")
    with pytest.raises(ConfigError, match=r"hydra.sweeper.objectives: nlp: no such metric"):
        values(result, None)


HIGHER = """
accuracy mean_robust_accuracy robust_accuracy/eps=0.1 robust_accuracy/fgsm/eps=0.10 log_likelihood/0.5 one_ahead/log_score
"""
LOWER = "attack_success/eps=0.3 nlpp/a one_ahead/mape"


@pytest.mark.parametrize("score", [*HIGHER.split(), *LOWER.split()])
def test_the_direction_of_a_score_follows_from_its_name(score):
    direction, other = DIRECTIONS if score in LOWER.split() else reversed(DIRECTIONS)
    assert single(score, None) == Objective(score, direction)
    assert single(score, None).contradiction is None
    assert single(score, other).direction == other  # the user has the last word, and is told
    assert "and the search is told to" in single(score, other).contradiction


def composed(*words: str) -> SearchProperties:
    return search_facts(compose_in_full(list(words)))


@pytest.mark.parametrize(
    ("words", "objective", "line"),
    [
        (["+experiment=digits_fgsm"], "accuracy",
         "accuracy: maximize (no objective= is given: the default of supervised problems); scored on the TEST rows, which no "
         "search should look at: validation=0.2 searches on training rows held out instead"),
        (["+experiment=digits_fgsm", "validation=0.25"], "accuracy", "; scored on 0.25 of the training rows, held out"),
        (["+experiment=multitask_toy"], "nlpp", "nlpp: minimize"),
        (["+experiment=friend_or_foe"], "reward", "reward: maximize (no objective= is given: the default of game problems)"),
        (["+experiment=mog"], "ksd", "ksd: minimize (no objective= is given: the default of density problems)"),
        (["+experiment=wiener_velocity"], "nmse", "nmse: minimize (no objective= is given: the default of sequence problems)"),
        (["+experiment=structural_co2"], "log_score", "scored on the times put aside for testing"),
    ],
)  # fmt: skip
def test_the_first_line_says_what_is_searched_and_on_which_rows(words, objective, line):
    of = composed(*words)
    assert of.default_objective == objective
    assert line in describe_objectives([single(objective, None)], True, of)[0]


def test_a_score_that_no_run_has_is_refused_before_the_first_trial():
    of = composed("+experiment=digits_fgsm")
    of.check([single("robust_accuracy/eps=0.1", None)])
    with pytest.raises(ConfigError, match="objective=reward: no score of a supervised problem"):
        of.check([single("reward", None)])
