"""Suites of the arena, and the length of a run by its budget."""

from unittest.mock import Mock

import pytest
import yaml
from support.runs.arena_suites import TOY, make_line, toy

from components.errors import ConfigMismatchError
from runner.arena import lengths, rows
from runner.arena.scores import (
    read_kept_lines,
    to_frame,
)
from runner.arena.suite import load_suite
from runner.catalogue.words import explicit_keys
from runner.errors import ConfigError
from runner.study.plan import plan
from scripts.arena import write_kept

ERROR = TOY["tables"][0]


def test_problems_add_overrides():
    suite = toy()
    runs = list(plan(suite.to_study(suite.rows[:1]), ["steps=3"]))
    assert [run.name for run in runs] == ["SGLD problem=normal", "SGLD problem=mixture"]
    words = ["dataset=gaussian", "inference=sgld", "steps=3"]
    assert runs[0].overrides == ["replicates=2", *TOY["overrides"], *words]


def test_user_suite_is_read(toy_suite):
    assert load_suite("toy") == toy()
    with pytest.raises(ConfigError, match=r"arena tiy: .* did you mean toy"):
        load_suite("tiy")
    toy_suite.write_text(yaml.safe_dump(TOY | {"budgts": {}}))
    with pytest.raises(ConfigError, match=r"budgts: .* did you mean budgets"):
        load_suite("toy")


def test_extended_suite_has_all_problems_and_scores(toy_suite):
    lines = [make_line("SGLD", "normal", 0.1), make_line("other", "normal", None)]
    write_kept(to_frame(lines), toy_suite.with_name("toy.csv.gz"))
    more = {"name": "more", "extends": "toy", "problems": {"wide": ["dataset=gaussian"]}}
    toy_suite.with_name("more.yaml").write_text(yaml.safe_dump(more))
    suite = load_suite("more")
    assert list(suite.problems) == [*TOY["problems"], "wide"]
    assert suite.rows == toy().rows
    runs = plan(suite.to_study(suite.rows[:1]), [])
    assert [run.cell["problem"] for run in runs] == list(suite.problems)
    more_lines = to_frame([make_line("SGLD", "wide", 0.2)])
    write_kept(more_lines, toy_suite.with_name("more.csv.gz"))
    # lines of a row without the deciding score are not inherited
    kept = read_kept_lines(suite)[["row", "problem"]]
    assert kept.to_numpy().tolist() == [["SGLD", "wide"], ["SGLD", "normal"]]
    toy_suite.with_name("most.yaml").write_text(yaml.safe_dump(more | {"extends": "more"}))
    with pytest.raises(ConfigError, match=r"more\.yaml: extends: .*; remove extends"):
        load_suite("most")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": {}}, "problems: missing"),
        ({"tables": [ERROR | {"columns": "seed"}]}, "grid key problem is neither its columns"),
        ({"tables": [ERROR | {"metric": "mean"}]}, "the direction of mean is unknown"),
        ({"budgets": {"small": {"gradients": 0}}}, "greater than 0"),
    ],
)
def test_invalid_suites_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        toy(**changes)


def test_score_without_direction_is_shown_but_not_ranked():
    suite = toy(tables=[ERROR, ERROR | {"name": "middle", "metric": "coverage90"}])
    assert [table.name for table in suite.ranked] == [ERROR["name"]]
    assert "coverage90" in suite.metrics


def test_budgets_are_parsed_by_name():
    assert (toy().budget(None), toy(budgets={}).budget(None)) == ("small", "")
    with pytest.raises(ConfigError, match=r"--budget huge: .*: small"):
        toy().budget("huge")


def test_steps_satisfy_every_limit():
    costs = {"gradients": (420.0, 820.0), "densities": (220.0, 320.0)}  # 20 and 5 per step
    for limits, steps in (
        ({"gradients": 2000, "densities": 9000}, 40 + 59),
        ({"gradients": 2000, "densities": 400}, 40 + 16),
        ({"forwards": 5}, None),
    ):
        assert lengths.count_steps(costs, limits, 20) == steps


@pytest.mark.parametrize(
    ("first", "reached", "warm_up"),
    # the budget ends at 40 steps; a step costs a hundredth of the share, or a thousandth
    [
        (1000, lambda n: (min(40, n + 2), 1.0), 36),
        (50, lambda n: (n + 2, n / 100), 50),
        (50, lambda n: (n + 2, n / 1000), 1000),
    ],
)
def test_warm_up_is_probed_until_it_takes_its_share(first, reached, warm_up, monkeypatch):
    monkeypatch.setattr(lengths, "rehearse_warm_up", lambda words, limits, n: reached(n))
    length = lengths.RunLength(toy(), {"gradients": 100.0}, [], {}, set())
    assert length.fit_warm_up(first) == warm_up


def find_words(*row):
    """Overrides of a row as planned on the first problem, and those for its length."""
    suite = toy()
    run = plan(suite.to_study([rows.make_row(list(row), "mine")]), [])[0]
    return run.overrides, lengths.find_length(suite, suite.budgets["small"], run.overrides)


def test_length_of_a_row_follows_its_budget():
    _, words = find_words("inference=sgld", "inference.thinning=2")
    # 20 chains: 20 gradients at the start, and 20 per step
    assert words[:2] == ["steps=19", "eval_every=geometric"]
    assert "inference.burn_in=4" in words
    assert not any("thinning" in word for word in words)  # the user's own
    assert words[-2:] == ["budget.gradients=400", "budget.densities=1200"]


@pytest.mark.parametrize("name", ["importance_sampling", "sgld"])
def test_run_that_ends_early_is_as_long_as_the_probe(name, monkeypatch):
    """Its start is beyond the budget, or it crashes and has to report its error."""
    if name == "sgld":
        error = ConfigMismatchError("step: planted crash")
        monkeypatch.setattr("runner.execution.execute.rehearse", Mock(side_effect=error))
    _, words = find_words(f"inference={name}")
    assert words[0] == f"steps={2 * lengths.PROBES[0]}"


def test_user_length_is_kept():
    planned, words = find_words("inference=sgld", "steps=50", "inference.burn_in=10")
    assert words == ["budget.gradients=400", "budget.densities=1200"]
    assert "steps" in explicit_keys(planned)
