"""Keywords of Python as words of a command line."""

import math

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from runner.python.words import words_of


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"steps": 100, "seed": np.int64(3)}, ["steps=100", "seed=3"]),
        ({"model": "bnn"}, ["model=bnn"]),
        ({"model": {"widths": [50], "name": "bnn"}}, ["model=bnn", "model.widths=[50]"]),
        (
            {"inference": {"attacker": {"name": "pgd", "steps": 7}}},
            ["inference.attacker=pgd", "inference.attacker.steps=7"],
        ),
        (
            {"smoke": True, "debug": None, "x": 1e-5, "y": math.inf},
            ["smoke=true", "debug=null", "x=1e-05", "y=inf"],
        ),
        ({"m": [{"name": "pgd", "eps": (0.1,)}]}, ["m=[{name:pgd,eps:[0.1]}]"]),
        ({"a": "true", "b": "3", "c": "it's, {so}", "d": "", "e": "a b\\"}, None),
    ],
)
def test_keywords_equal_words_of_a_command_line(keys, words):
    overrides = words_of(keys)
    assert words is None or overrides == words
    parsed = [OverridesParser.create().parse_override(word) for word in overrides]
    if words is None:
        assert {o.key_or_group: o.value() for o in parsed} == keys


def test_dict_is_one_value_below_a_null_default():
    """Keys below null cannot be set individually, while keys of a mapping or a component can."""
    budget = {"total": 3.0, "least": {"tv": 1.0, "radio": 0.5}}
    expected = [
        (
            {"dataset": {"name": "csv_series", "budget": budget}},
            "dataset=csv_series dataset.budget.total=3.0 dataset.budget.least={tv:1.0,radio:0.5}",
        ),
        ({"dataset": {"budget": {"least": {"tv": 1.0}}}}, "dataset.budget.least={tv:1.0}"),
        (
            {"dataset": {"name": "pettingzoo", "kwargs": {"size": 3}}},
            "dataset=pettingzoo dataset.kwargs={size:3}",
        ),
        (
            {"attacker": {"name": "pgd", "eps": [0.1]}, "steps": 3},
            "attacker=pgd attacker.eps=[0.1] steps=3",
        ),
        (
            {"inference": {"name": "adversarial_training", "training_attacker": {"steps": 7}}},
            "inference=adversarial_training inference.training_attacker.steps=7",
        ),
    ]
    for keys, words in expected:
        assert words_of(keys) == words.split()
