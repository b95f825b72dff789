"""Keywords of Python as words of a command line."""

from __future__ import annotations

from runner.python.words import words_of


def test_a_dict_is_one_value_where_nothing_lies_by_default():
    """Keys below null cannot be set one by one; those below a mapping, or of a part, can."""
    budget = {"total": 3.0, "least": {"tv": 1.0, "radio": 0.5}}
    assert words_of({"dataset": {"name": "csv_series", "budget": budget}}) == [
        "dataset=csv_series",
        "dataset.budget.total=3.0",
        "dataset.budget.least={tv:1.0,radio:0.5}",
    ]
    assert words_of({"dataset": {"budget": {"least": {"tv": 1.0}}}}) == [
        "dataset.budget.least={tv:1.0}"
    ]
    assert words_of({"dataset": {"name": "pettingzoo", "kwargs": {"size": 3}}}) == [
        "dataset=pettingzoo",
        "dataset.kwargs={size:3}",
    ]
    assert words_of({"attacker": {"name": "pgd", "eps": [0.1]}, "steps": 3}) == [
        "attacker=pgd",
        "attacker.eps=[0.1]",
        "steps=3",
    ]
    assert words_of(
        {"inference": {"name": "adversarial_training", "training_attacker": {"steps": 7}}}
    ) == [
        "inference=adversarial_training",
        "inference.training_attacker.steps=7",
    ]
