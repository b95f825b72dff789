"""Every score is in the table of directions, and printed tables agree with it."""

from components.metrics.names import PROBLEMS, SCORES, base_name, better


def test_score_has_one_direction():
    assert len(PROBLEMS) == sum(len(SCORES[side]) for side in ("higher", "lower", "neither"))


def test_score_is_recognised_by_its_first_part():
    assert base_name("nlpp/task 2/x") == "nlpp"
    assert base_name("one_ahead/mape") == "mape"
    assert better("robust_nlpp/eps=0.1") == "lower"
    assert better("mean_robust_accuracy") == "higher"
    assert better("coverage90/velocity") is None
    assert better("my_own_score") is None
