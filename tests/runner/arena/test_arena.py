"""The arena: suites, the length of a run by its budget, kept scores, and the commands."""

import math
import os

import pandas as pd
import pytest
import yaml
from support.runs.arena_suites import TOY, make_line, run_here, toy

from runner.arena import command, figures, lengths, rows, summary
from runner.arena.scores import (
    final_lines,
    find_state,
    read_kept,
    read_kept_lines,
    read_snapshot,
    to_frame,
    write_kept,
)
from runner.arena.suite import Suite, load_suite
from runner.catalogue.words import explicit_keys
from runner.errors import ConfigError
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot
from scripts.site.crawl import crawl, read_page

ERROR = TOY["tables"][0]


# ---- suites
def test_problems_add_overrides():
    suite = toy()
    runs = list(plan(suite.to_study(suite.rows[:1]), ["steps=3"]))
    assert [run.name for run in runs] == ["SGLD problem=normal", "SGLD problem=mixture"]
    words = ["dataset=gaussian", "inference=sgld", "steps=3"]
    assert runs[0].overrides == ["replicates=2", *TOY["overrides"], *words]


def test_user_suite_is_read(toy_suite):
    assert load_suite("toy") == toy()
    with pytest.raises(ConfigError, match="arena tiy: no such suite, did you mean toy"):
        load_suite("tiy")
    toy_suite.write_text(yaml.safe_dump(TOY | {"budgts": {}}))
    with pytest.raises(ConfigError, match="budgts: unknown key, did you mean budgets"):
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
    # lines of a row without the score that decides are not inherited
    kept = read_kept_lines(suite)[["row", "problem"]]
    assert kept.to_numpy().tolist() == [["SGLD", "wide"], ["SGLD", "normal"]]
    toy_suite.with_name("most.yaml").write_text(yaml.safe_dump(more | {"extends": "more"}))
    with pytest.raises(ConfigError, match=r"more\.yaml: extends: another suite extends this one"):
        load_suite("most")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": {}}, "problems: missing"),
        ({"tables": [ERROR | {"columns": "seed"}]}, "grid key problem is neither its columns"),
        ({"tables": [ERROR | {"metric": "mean"}]}, "neither side of mean is better"),
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
    with pytest.raises(ConfigError, match="--budget huge: no such budget; there are: small"):
        toy().budget("huge")


# ---- lengths
def test_steps_satisfy_every_limit():
    costs = {"gradients": (420.0, 820.0), "densities": (220.0, 320.0)}  # 20 and 5 a step
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
    # 20 chains: 20 gradients at the start, and 20 a step
    assert words[:2] == ["steps=19", "eval_every=geometric"]
    assert "inference.burn_in=4" in words
    assert not any("thinning" in word for word in words)  # the user's own
    assert words[-2:] == ["budget.gradients=400", "budget.densities=1200"]


def test_start_beyond_the_budget_ends_the_probe():
    _, words = find_words("inference=importance_sampling")
    assert words[0] == f"steps={2 * lengths.PROBES[0]}"


def test_user_length_is_kept():
    planned, words = find_words("inference=sgld", "steps=50", "inference.burn_in=10")
    assert words == ["budget.gradients=400", "budget.densities=1200"]
    assert "steps" in explicit_keys(planned)


# ---- rows and scores
def test_rows_are_named_by_their_component():
    assert rows.name_row(["inference.scale=2", "inference=walk"]) == "walk"
    assert rows.name_row(["+steps=3"]) == "+steps=3"
    with pytest.raises(ConfigError, match="--as 'a/b': not a valid row name"):
        rows.make_row([], "a/b")


def test_lines_outside_the_suite_are_excluded(toy_suite):
    """Of a problem that it no longer has, of more replicates than it has, and lines kept twice."""
    line = make_line("SGLD", "normal", 0.1)
    others = [line, make_line("SGLD", "old", 0.1), line | {"replicate": 2}, line | {"seed": 7}]
    write_kept(to_frame([line, *others]), toy_suite.with_name("toy.csv.gz"))
    assert len(rows.read_lines(load_suite("toy"), "small", [])) == 1


DONE = {"state": "done", "result": {"cost/gradients": [100.0]}}
RHAT = {"about": "run", "check": "rhat", "passed": False, "detail": ""}
DOUBT = {"checks": {"0": [RHAT]}}
SHORT = {"checks": {"0": [RHAT | {"short": True}]}}


@pytest.mark.parametrize(
    ("run", "facts", "limits", "state"),
    [
        ({}, DONE, {"gradients": 100}, "done"),
        ({}, DONE, {"gradients": 80}, "over budget"),
        ({}, DONE | DOUBT, {}, "doubted"),
        ({}, DONE | SHORT, {}, "short"),
        ({}, {"state": "diverged"}, {}, "failed"),
        ({}, {"state": "failed", "budget_ends": {"0": {"step": 0}}}, {}, "over budget"),
        ({}, {}, {}, "not run"),
        ({"refused": "no", "unfit": True}, {}, {}, "not applicable"),
        ({"refused": "no"}, {}, {}, "not run"),
    ],
)
def test_states_of_runs_are_distinguished(run, facts, limits, state):
    assert find_state(FrozenRun("a", "a", {"problem": "x"}, [], **run), facts, limits) == state


def test_kept_scores_are_read_as_written(tmp_path):
    path = tmp_path / "toy.csv.gz"
    lines = to_frame(
        [
            make_line("a", "x", None, "failed"),
            make_line("a", "y", 2.0, step=5),
            make_line("b", "x", 0.125),
        ]
    )
    write_kept(lines, path)
    first = path.read_bytes()
    write_kept(lines[::-1], path)
    assert path.read_bytes() == first
    pd.testing.assert_frame_equal(read_kept(path), lines)
    path.write_bytes(first[:-20])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_kept(path)


@pytest.mark.parametrize(
    ("method", "expected"), [("gaussian_vi", False), ("nuts", True), ("of_mine", True)]
)
def test_independent_draws_have_no_effective_sample_size(tmp_path, monkeypatch, method, expected):
    suite = toy()
    config = {"inference": {"name": method}}
    run = FrozenRun("a", "a", {"problem": "gauss"}, [], "e", "s", "d", config)
    study = suite.to_study(list(suite.rows))
    snapshot = Snapshot("arena.toy.a", study, "", "", [], [run], tmp_path)
    result = {"error_mean": [0.5], "ess": [900.0]}
    facts = {"state": "done", "result": result, "checks": {}, "seed": 0}
    monkeypatch.setattr(Snapshot, "facts", lambda self, run: facts)
    lines = read_snapshot(suite, "", snapshot)
    assert ("ess" in lines) is expected
    assert lines["error_mean"].tolist() == [0.5]


# ---- from the command line
@pytest.fixture
def here(toy_suite, tmp_path, monkeypatch):
    """The folder of the toy suite, which is also the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_row_is_run_and_shown(here, capsys, monkeypatch):
    monkeypatch.setattr(command, "run_remaining", run_here)
    monkeypatch.setattr("runner.execution.replicate.Replicate.write", lambda *_: None)
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    words = ["arena", "run", "toy", "inference=sgld", "--as", "mine", "--only", "problem=normal"]
    assert command.main(words) == 0
    printed = capsys.readouterr().out
    assert "1\tmine\t1.0" in printed
    assert "page     runner arena show toy --budget small" in printed
    suite = load_suite("toy")
    (snapshot,) = rows.find_snapshots(suite, "small", here / "outputs")
    assert snapshot.runs[0].experiment == "arena.toy"
    lines = read_snapshot(suite, "small", snapshot)
    states = final_lines(lines).groupby("problem")["state"].agg(list)
    assert states.to_dict() == {"normal": ["done"] * 2, "mixture": ["not run"]}
    assert snapshot.study.rows[0].overrides == ["inference=sgld"]
    steps = {run.cell["problem"]: run.config["steps"] for run in snapshot.runs}
    assert steps["normal"] == 19
    with pytest.raises(ConfigError, match="row mine was frozen with inference=sgld; give another"):
        command.main(["arena", "run", "toy", "inference=psgld", "--as", "mine"])
    assert command.main(["arena", "show", "toy"]) == 0
    assert (here / "outputs" / "arena" / "toy" / "small.html").is_file()


def test_problem_without_data_is_skipped(here, monkeypatch, capsys):
    monkeypatch.setenv("RUNNER_DATA_DIR", str(here / "empty"))
    away = ["dataset=posteriordb", "dataset.posterior=sblri-blr", "dataset.offline=error"]
    suite = Suite(**TOY | {"problems": TOY["problems"] | {"away": [*away, "offline=true"]}})
    row = rows.make_row(["inference=sgld"], None)
    snapshot = rows.freeze(suite, "small", row, here / "outputs", [])
    (left_out,) = [run for run in snapshot.runs if run.lacks_data]
    assert left_out.cell == {"problem": "away"}
    assert find_state(left_out, {}, {}) == "not run"
    shown = capsys.readouterr()
    assert "1 of 3 problems have no data here and are left out" in shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inference=sgld", "inference.step_siz=3"], "step_siz"),
        # a refusal tries what would fit
        pytest.param(["inference=gibbs"], "no run can be composed", marks=pytest.mark.slow),
    ],
)
def test_invalid_row_is_refused(here, words, message):
    with pytest.raises(ConfigError, match=message):
        command.main(["arena", "run", "toy", *words])


def test_suites_are_listed(toy_suite, capsys):
    seconds = {"cost/cpu_seconds": 600.0}
    kept = [
        make_line("SGLD", p, 1.0, replicate=r, **seconds) for p in TOY["problems"] for r in (0, 1)
    ]
    write_kept(to_frame(kept), toy_suite.with_name("toy.csv.gz"))
    assert command.main(["arena"]) == 0
    lines = [each.split("\t") for each in capsys.readouterr().out.splitlines()]
    toys = next(each for each in lines if each[0] == "toy")
    minutes = math.ceil((4 * 600 + 2 * summary.START_SECONDS) / 60 / (os.cpu_count() or 1))
    assert toys[1:] == [
        *("two densities", "2 problems, 1 of 2 rows have scores", "leader: SGLD"),
        f"a row takes {minutes} min (small)",
    ]


def test_published_pages_open_offline_with_an_address_per_row(toy_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    with pytest.raises(ConfigError, match="no suite has scores"):
        command.main(["arena", "publish", str(tmp_path / "site"), "toy"])
    kept = [make_line(row, p, 1.0) for p in TOY["problems"] for row in ("SGLD", "walk")]
    write_kept(to_frame(kept), toy_suite.with_name("toy.csv.gz"))
    assert command.main(["arena", "publish", str(tmp_path / "site"), "toy"]) == 0
    assert crawl(tmp_path / "site") == {}
    assert {"row-SGLD", "row-walk"} <= read_page(tmp_path / "site" / "toy.html").anchors
    assert read_page(tmp_path / "site" / "index.html").links == ["toy.html"]
