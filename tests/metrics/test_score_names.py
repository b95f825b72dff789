"""Every score is in the table of directions, and printed tables agree with it."""

import math

from components.metrics.names import PROBLEMS, SCORES, base_name, better, score_range


def test_score_has_one_direction():
    assert len(PROBLEMS) == sum(len(SCORES[side]) for side in ("higher", "lower", "neither"))


def test_score_is_recognised_by_its_first_part():
    assert base_name("nlpp/task 2/x") == "nlpp"
    assert base_name("one_ahead/mape") == "mape"
    assert better("robust_nlpp/eps=0.1") == "lower"
    assert better("mean_robust_accuracy") == "higher"
    assert better("coverage90/velocity") is None
    assert better("my_own_score") is None


def test_accuracy_is_a_share_and_an_error_not_negative():
    assert PROBLEMS.keys() >= {*SCORES["not_negative"]} >= {*SCORES["at_most_one"]}
    assert score_range("robust_accuracy/eps=0.1") == (0, 1)
    assert score_range("log_likelihood") == (-math.inf, math.inf)
