"""Settings of a row are chosen on validation problems, and the cost of tuning is reported."""

import json

import pytest
from support.runs.arena_suites import TOY, make_line, run_here, toy, use_suite
from support.runs.json_output import read_objects

from runner.arena import tune
from runner.arena.rows import make_row
from runner.arena.scores import to_frame
from runner.errors import ConfigError

KEYS = {
    "overrides": [*TOY["overrides"], "figures=false"],
    "problems": {"mixture": TOY["problems"]["mixture"]},
    "validation": {"normal": TOY["problems"]["normal"]},
    "budgets": {"small": {"densities": 400}},
    "rows": [TOY["rows"][1] | {"cells": {"problem": {"mixture": ["inference.chains=4"]}}}],
    "tables": TOY["tables"][:1],
}


def test_settings_are_all_combinations_of_values():
    words = [
        "inference=sgld",
        "inference.step_size=0.1,1",
        "inference.chains=2,3",
        "inference.a=[1,2]",
    ]
    assert tune.list_settings(words) == [
        [
            "inference=sgld",
            f"inference.step_size={step}",
            f"inference.chains={n}",
            "inference.a=[1,2]",
        ]
        for step in ("0.1", "1")
        for n in (2, 3)
    ]
    with pytest.raises(ConfigError, match="nothing to choose from"):
        tune.list_settings(["inference=sgld", "inference.chains=2"])


def test_problems_of_the_tables_are_not_used():
    derived = tune.to_validation(toy(**KEYS))
    assert derived.grid == {"problem": ["normal"]}
    assert derived.experiment == "arena.tuning.toy"
    with pytest.raises(ConfigError, match="suite toy has no validation problems"):
        tune.to_validation(toy(**KEYS | {"validation": {}}))


def test_costs_are_summed_over_settings_and_problems():
    lines = [
        make_line(row, problem, 1.0, replicate=r, cost=10.0 + 2 * r)
        for row in "ab"
        for problem in "xyz"
        for r in (0, 1)
    ]
    total = {"gradients": 2 * 3 * 11.0}
    assert tune.count_costs(to_frame(lines), "error_mean", {}) == total
    lost = make_line("a", "w", None, "failed")
    costs = tune.count_costs(to_frame([*lines, lost]), "error_mean", {"gradients": 40.0})
    assert costs == {"gradients": total["gradients"] + 40.0}


def test_best_setting_is_chosen_and_its_row_states_the_cost(tmp_path, command_line, monkeypatch):
    monkeypatch.setattr(tune, "run_remaining", run_here)
    out = tmp_path / "out"
    where = ["--json", "--jobs=2", "--output-dir", str(out), "--config-dir", str(tmp_path / "conf")]
    words = ["inference=random_walk_mh", "inference.chains=4", "inference.warmup=1"]
    values = "inference.step_size=0.5,1e-6"  # the second setting hardly moves
    with use_suite(tmp_path, TOY | KEYS):
        code, printed, error = command_line("arena", "tune", "toy", *words, values, *where)
    assert code == 0, error
    lines = read_objects("arena", printed)
    (chosen,) = (line["chosen"] for line in lines if "chosen" in line)
    assert chosen.split()[0] == words[0]
    assert "inference.step_size=0.5" in chosen
    (written,) = (out / "arena" / "toy").glob("*.tuned.json")
    choice = json.loads(written.read_text())
    assert (
        2 * 380 <= choice["tuned"]["densities"] <= 2 * 440
    )  # two settings on one problem, with one budget each
    suite = toy(**KEYS)
    row = make_row(choice["overrides"], None)
    assert tune.read_tuned(suite, "small", row, out).tuned == choice["tuned"]
    other = make_row([*choice["overrides"][:-1], "inference.step_size=2"], None)
    assert tune.read_tuned(suite, "small", other, out).tuned == {}
