"""The arena: rows, kept scores, and the commands."""

import os

import pandas as pd
import pytest
from support.runs.arena_suites import TOY, make_line, run_here, toy
from support.runs.json_output import read_objects

from runner.arena import command, figures, rows, summary
from runner.arena.scores import (
    final_lines,
    find_state,
    read_kept,
    read_snapshots,
    to_frame,
)
from runner.arena.suite import Suite, load_suite
from runner.errors import ConfigError
from runner.study.pricing.study_records import format_seconds
from runner.study.snapshot import FrozenRun, Snapshot
from scripts.arena import write_kept
from scripts.site.crawl import crawl, read_page


def test_rows_are_named_by_their_component():
    assert rows.name_row(["inference.scale=2", "inference=walk"]) == "walk"
    assert rows.name_row(["+steps=3"]) == "+steps=3"
    with pytest.raises(ConfigError, match=r"--as 'a/b': .*; choose one such as mine"):
        rows.make_row([], "a/b")


def test_lines_outside_the_suite_are_excluded(toy_suite):
    """Lines of removed problems, of additional replicates, and duplicate lines."""
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
            make_line("b", "x", 0.125, "doubted", checks="rhat ¶; bias"),
        ]
    )
    write_kept(lines, path)
    first = path.read_bytes()
    write_kept(lines[::-1], path)
    assert path.read_bytes() == first
    pd.testing.assert_frame_equal(read_kept(path), lines)
    path.write_bytes(first[:-20])
    with pytest.raises(ConfigError, match=r"cannot be read .*; restore the original file"):
        read_kept(path)


def read_run(tmp_path, monkeypatch, method, *checks):
    """Lines of a finished run."""
    suite = toy()
    config = {"inference": {"name": method}}
    run = FrozenRun("a", "a", {"problem": "gauss"}, [], "e", "s", "d", config)
    study = suite.to_study(list(suite.rows))
    snapshot = Snapshot("arena.toy.a", study, "", "", [], [run], tmp_path)
    result = {"error_mean": [0.5], "ess": [900.0]}
    facts = {"state": "done", "result": result, "checks": {"0": checks}, "seed": 0}
    monkeypatch.setattr(Snapshot, "facts", lambda self, run: facts)
    return read_snapshots(suite, "", [snapshot])


@pytest.mark.parametrize(
    ("method", "expected"), [("gaussian_vi", False), ("nuts", True), ("of_mine", True)]
)
def test_independent_draws_have_no_effective_sample_size(tmp_path, monkeypatch, method, expected):
    lines = read_run(tmp_path, monkeypatch, method)
    assert ("ess" in lines) is expected
    assert lines["error_mean"].tolist() == [0.5]


def test_line_names_each_failed_check_and_its_kind(tmp_path, monkeypatch):
    checks = [RHAT | {"short": True}, RHAT | {"check": "bias"}]
    lines = read_run(tmp_path, monkeypatch, "nuts", *checks)
    assert lines[["state", "checks"]].to_numpy().tolist() == [["doubted", "rhat ¶; bias"]]


@pytest.fixture
def suite_folder(toy_suite, tmp_path, monkeypatch):
    """The folder of the toy suite, which is also the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_row_is_run_and_shown(suite_folder, command_line, monkeypatch):
    monkeypatch.setattr(command, "run_remaining", run_here)
    monkeypatch.setattr("runner.execution.replicate.Replicate.write", lambda *_: None)
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    words = ["arena", "run", "toy", "inference=sgld", "--as", "mine", "--only", "problem=normal"]
    code, printed, error = command_line(*words, "--json")
    assert code == 0, error
    lines = read_objects("arena", printed)
    (row,) = (line for line in lines if "row" in line)
    assert (row["place"], row["row"], row["mean_rank"]) == ("1", "mine", "1.0")
    assert {"page": "runner arena show toy --budget small"} in lines
    suite = load_suite("toy")
    (snapshot,) = rows.find_snapshots(suite, "small", suite_folder / "outputs")
    assert snapshot.runs[0].experiment == "arena.toy"
    lines = read_snapshots(suite, "small", [snapshot])
    states = final_lines(lines).groupby("problem")["state"].agg(list)
    assert states.to_dict() == {"normal": ["done"] * 2, "mixture": ["not run"]}
    assert snapshot.study.rows[0].overrides == ["inference=sgld"]
    assert [run.config.get("steps") for run in snapshot.runs] == [19, None]  # one is measured
    with pytest.raises(ConfigError, match=r"row mine .* inference=sgld; give another"):
        command.main(["arena", "run", "toy", "inference=psgld", "--as", "mine"])
    assert command.main(["arena", "show", "toy"]) == 0
    assert (suite_folder / "outputs" / "arena" / "toy" / "small.html").is_file()


def test_only_selected_problems_are_measured(toy_suite, tmp_path, monkeypatch):
    calls = []
    length = ["steps=70", "inference.burn_in=1"]
    monkeypatch.setattr(rows, "find_length", lambda *words: calls.append(words) or length)
    row = rows.make_row(["inference=sgld"], None)
    for problem, steps in (("normal", [70, None]), ("mixture", [70, 70])):
        only = [f"problem={problem}"]
        snapshot = rows.prepare_row(load_suite("toy"), "small", row, tmp_path, only=only)
        assert [run.config.get("steps") for run in snapshot.runs] == steps
        assert len(calls) == steps.count(70)


def test_plan_estimates_the_time_from_another_budget(toy_suite, capsys):
    suite = toy(budgets=TOY["budgets"] | {"large": {"gradients": 40_000, "densities": 120_000}})
    row = rows.make_row(["inference=sgld"], "mine")
    plan = [suite, "large", row, ["problem=normal"], 1]
    summary.print_plan(*plan)
    assert "1 of 2 problems of toy, budget large" in (shown := capsys.readouterr().out)
    assert summary.UNKNOWN_TIME in shown
    kept = [make_line("SGLD", "normal", 1.0, **{"cost/cpu_seconds": 6.0})]
    kept += [make_line("walk", "normal", 1.0, **{"cost/cpu_seconds": 60.0})]
    write_kept(to_frame(kept), toy_suite.with_name("toy.csv.gz"))
    summary.print_plan(*plan)
    seconds = 3 * 100 * 6.0 + summary.START_SECONDS
    assert f"time     about {format_seconds(seconds)}" in capsys.readouterr().out


def test_problem_without_data_is_skipped(suite_folder, monkeypatch, capsys):
    monkeypatch.setenv("RUNNER_DATA_DIR", str(suite_folder / "empty"))
    away = ["dataset=posteriordb", "dataset.posterior=sblri-blr", "dataset.offline=error"]
    suite = Suite(**TOY | {"problems": TOY["problems"] | {"away": [*away, "offline=true"]}})
    row = rows.make_row(["inference=sgld"], None)
    snapshot = rows.freeze(suite, "small", row, suite_folder / "outputs", [])
    (left_out,) = [run for run in snapshot.runs if run.lacks_data]
    assert left_out.cell == {"problem": "away"}
    assert find_state(left_out, {}, {}) == "not run"
    shown = capsys.readouterr()
    assert "1 of 3 problems have no data here" in shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inference=sgld", "inference.step_siz=3"], "step_siz"),
        # a refusal searches for compatible components
        pytest.param(["inference=gibbs"], "no run can be composed", marks=pytest.mark.slow),
    ],
)
def test_invalid_row_is_refused(suite_folder, words, message):
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
    jobs = min(os.cpu_count() or 1, 2)
    seconds = (4 * 600 + 2 * summary.START_SECONDS) / jobs + 2 * 600
    assert toys[1:] == [
        *("two densities", "2 problems, 1 of 2 rows have scores", "SGLD"),
        f"{format_seconds(seconds)} (small)",
    ]


def test_published_pages_open_offline_with_an_address_per_row(toy_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_boards", lambda *_: [])
    with pytest.raises(ConfigError, match="no suite has scores; run a row"):
        command.main(["arena", "publish", str(tmp_path / "site"), "toy"])
    kept = [make_line(row, p, 1.0) for p in TOY["problems"] for row in ("SGLD", "walk")]
    write_kept(to_frame(kept), toy_suite.with_name("toy.csv.gz"))
    assert command.main(["arena", "publish", str(tmp_path / "site"), "toy"]) == 0
    assert crawl(tmp_path / "site") == {}
    assert {"row-SGLD", "row-walk"} <= read_page(tmp_path / "site" / "toy.html").anchors
    assert read_page(tmp_path / "site" / "index.html").links == ["toy.html"]
