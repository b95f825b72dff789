"""Settings of a row are chosen on validation problems, and what the choice cost is stated."""

from __future__ import annotations

import json

import pytest
import yaml

from runner.arena import command, tune
from runner.arena.rows import make_row
from runner.arena.scores import Line
from runner.arena.standings import rank_rows
from runner.arena.suite import Suite
from runner.disk import conf_folders
from runner.errors import ConfigError

TOY = {
    "name": "toy",
    "measures": "two densities",
    "description": "Two densities.",
    "replicates": 2,
    "overrides": ["model=target_density", "tracking=false", "figures=false"],
    "problems": {"mixture": ["dataset=mixture_of_gaussians_1d"]},
    "validation": {"normal": ["dataset=gaussian"]},
    "budgets": {"small": {"densities": 400}},
    "rows": [
        {"label": "walk", "model": "walk", "preset": "", "overrides": ["inference=random_walk_mh"],
         "cells": {"problem": {"mixture": ["inference.chains=4"]}}},
    ],
    "tables": [{"name": "error", "title": "Error", "columns": "problem", "metric": "error_mean"}],
}  # fmt: skip


@pytest.fixture
def toy_folder(tmp_path):
    (tmp_path / "conf" / "arena").mkdir(parents=True)
    (tmp_path / "conf" / "arena" / "toy.yaml").write_text(yaml.safe_dump(TOY, sort_keys=False))
    with conf_folders.restore_folders_on_exit():
        yield tmp_path


def test_settings_are_all_combinations_of_the_values():
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


def test_problems_of_the_tables_are_not_touched():
    derived = tune.to_validation(Suite(**TOY))
    assert derived.grid == {"problem": ["normal"]}
    assert derived.experiment == "arena.tuning.toy"
    with pytest.raises(ConfigError, match="suite toy has no validation problems"):
        tune.to_validation(Suite(**TOY | {"validation": {}}))


def test_costs_are_summed_over_settings_and_problems_of_a_replicate():
    def line(row, problem, replicate, cost):
        values = {"error_mean": 1.0, "cost/gradients": cost}
        return Line("small", row, problem, 0, replicate, -1, "done", values=values)

    lines = [
        line(row, problem, r, 10.0 + 2 * r) for row in "ab" for problem in "xyz" for r in (0, 1)
    ]
    assert tune.count_costs(lines, "error_mean", {}) == {"gradients": 2 * 3 * 11.0}
    lost = Line("small", "a", "w", 0, 0, -1, "failed")
    before = Line("small", "a", "w", 0, 0, 7, "failed", values={"cost/forwards": 3.0})
    assert tune.count_costs([*lines, lost, before], "error_mean", {"gradients": 40.0}) == {
        "gradients": 2 * 3 * 11.0 + 40.0,
        "forwards": 3.0,
    }


def test_the_best_setting_is_chosen_and_its_row_states_the_cost(toy_folder, capsys):
    where = ["--output-dir", str(toy_folder / "out"), "--config-dir", str(toy_folder / "conf")]
    words = ["inference=random_walk_mh", "inference.chains=4", "inference.warmup=1"]
    values = "inference.step_size=0.5,1e-6"  # the second one hardly moves
    code = command.main(["arena", "tune", "toy", *words, values, "--jobs", "2", *where])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "chosen   inference=random_walk_mh" in said
    assert "inference.step_size=0.5" in said.split("chosen")[1]
    (written,) = (toy_folder / "out" / "arena" / "toy").glob("*.tuned.json")
    choice = json.loads(written.read_text())
    assert (
        2 * 380 <= choice["costs"]["densities"] <= 2 * 440
    )  # two settings, one problem, one budget each
    suite = Suite(**TOY)
    row = make_row(choice["overrides"], None)
    assert tune.read_tuned(suite, "small", row, toy_folder / "out").tuned == choice["costs"]
    other = make_row([*choice["overrides"][:-1], "inference.step_size=2"], None)
    assert tune.read_tuned(suite, "small", other, toy_folder / "out").tuned == {}


def test_a_tie_of_settings_is_decided_by_the_median_and_said():
    """Mean ranks 2, 2, 2 of three settings on three problems; the first by name is the worst."""
    scores = {"a": (-1, -5, -9), "b": (-2, -6, -4), "c": (-3, -1, -8)}
    lines = [
        Line("", row, problem, 0, 0, -1, "done", values={"predictive_ll": score})
        for row, each in scores.items()
        for problem, score in zip("xyz", each, strict=True)
    ]
    best, *others = rank_rows(lines, "predictive_ll", "higher")
    assert (best.row, best.typical) == ("c", -3)
    assert [s.mean_rank for s in (best, *others)] == [2, 2, 2]
    assert tune.describe_tie(best, "predictive_ll") == (
        "tie      mean rank 2.0 is that of 2 other settings too: the best median predictive_ll "
        "decides, -3"
    )
