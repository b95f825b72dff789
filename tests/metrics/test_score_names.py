"""Every score has its place in the table of directions, and printed tables agree with it."""

from __future__ import annotations

from typing import get_args

import pytest

from components.contracts.problems import Kind
from components.metrics.names import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    UNDIRECTED_SCORES,
    base_name,
    better,
    score_names,
)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_score_of_a_run_is_in_the_table_once(kind):
    names = score_names(kind, attacked=True)
    # which holds scores of other forecasts
    missing = names - HIGHER_IS_BETTER - LOWER_IS_BETTER - UNDIRECTED_SCORES - {"one_ahead"}
    assert not missing, "add them to components/metrics/names.py"
    assert not HIGHER_IS_BETTER & LOWER_IS_BETTER
    assert not (HIGHER_IS_BETTER | LOWER_IS_BETTER) & UNDIRECTED_SCORES


def test_a_score_is_known_by_what_comes_before_its_task_or_size():
    assert base_name("nlpp/task 2/x") == "nlpp"
    assert base_name("one_ahead/mape") == "mape"
    assert better("robust_nlpp/eps=0.1") == "lower"
    assert better("mean_robust_accuracy") == "higher"
    assert better("coverage90/velocity") is None
    assert better("my_own_score") is None
