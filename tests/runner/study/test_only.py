"""Runs of a study that ``--only`` selects."""

from dataclasses import replace

import pytest

from runner.errors import ConfigError
from runner.study import choice

FACTS = [
    {"model": "igp", "preset": "variance 0.5, idle 0.1", "label": "a=b"},
    {"model": "smdgp", "preset": "variance 0.5", "label": "c"},
    {"model": "smdgp", "preset": "unaware", "label": "c"},
]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("model=igp,preset=unaware", {"model": {"igp"}, "preset": {"unaware"}}),
        ("model=igp|smdgp, label=a=b", {"model": {"igp", "smdgp"}, "label": {"a=b"}}),
        ("model=igp,model=smdgp", {"model": {"igp", "smdgp"}}),
        ("model=igp,smdgp", {"model": {"igp", "smdgp"}}),
        (
            "preset=variance 0.5, idle 0.1|unaware",
            {"preset": {"variance 0.5, idle 0.1", "unaware"}},
        ),
        ("preset=unaware|variance 0.5", {"preset": {"variance 0.5", "unaware"}}),
    ],
)
def test_only_option_has_pairs_and_alternatives(text, chosen):
    assert choice.parse_choice(text, FACTS) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("preset=unawere", "no run has unawere, did you mean unaware.*commas separate KEY=VALUE"),
        ("model=igp,presett=x", "unknown key, did you mean preset.*keys: model, preset, label"),
        ("igp", "write KEY=VALUE, such as .*keys: model, preset, label; commas separate"),
    ],
)
def test_invalid_only_option_names_keys_and_separator(text, message):
    with pytest.raises(ConfigError, match=message):
        choice.parse_choice(text, FACTS)


def test_all_pairs_of_only_apply_and_repeated_keys_add_values(make_study):
    frozen = make_study("a", "b", "c")
    both = choice.select_runs(frozen, ["steps=0", "steps=2"])
    assert [run.name for run in both] == ["a", "c"]
    assert [run.name for run in choice.select_runs(frozen, ["steps=1,preset=small"])] == ["b"]
    large = replace(frozen.runs[0], name="d", row="SGLD, large", cell={"steps": 9})
    with pytest.raises(ConfigError, match="matches all pairs; commas separate"):
        choice.select_runs(replace(frozen, runs=[*frozen.runs, large]), ["steps=0,preset=large"])
