"""Studies: frozen definitions, skipping what is done, crashes that stay alone, signals handed on,
only the failed."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import yaml
from support.runs.configured import repeatable

from runner.errors import ConfigError
from runner.study import choice, snapshot, study
from runner.study.definition import StudyDefinition, load_study
from runner.study.display import StudyDisplay
from runner.study.job_pool import JobPool
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot

DEFINITION = {
    "name": "two",
    "description": "Two step sizes of two samplers.",
    "overrides": ["smoke=true", "tracking=false", "offline=true"],
    "grid": {"steps": [60, 80], "seed": [0, 1]},
    "rows": [
        {"label": "SGLD", "model": "sgld", "preset": "small", "experiment": "mog", "overrides": ["inference.step_size=0.01"]},
        {"label": "SGLD", "model": "sgld", "preset": "large", "experiment": "mog", "grid": {"steps": [60]}},
    ],
    "tables": [{"name": "mean", "title": "Error of the mean", "columns": "steps", "metric": "error_mean", "better": "lower"}],
}  # fmt: skip

# Stands in for the runner: what it does depends on the name of the run.
FAKE = """
import json, os, pathlib, signal, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
def state(word, **more):
    (folder / "run.json").write_text(json.dumps({"state": word, "error": None, "finished": {"0": {}}, **more}))
def stop(*_):
    state("interrupted", error="checkpointed"); sys.exit(143)
signal.signal(signal.SIGTERM, stop)
state("running")
with (folder / "launches").open("a") as file: file.write(os.environ["RUNNER_STUDY"] + os.environ["OMP_NUM_THREADS"])
if "crash" in name and not (folder / "second").exists():
    (folder / "second").touch(); os.kill(os.getpid(), signal.SIGKILL)
if "fail" in name:
    state("failed", error="Cholesky failed"); sys.exit(1)
if "diverge" in name:
    state("diverged", error="elbo is nan"); sys.exit(1)
if "long" in name: time.sleep(60)
state("done")
"""


@pytest.fixture
def path(tmp_path):
    """The definition as a file of the user's own."""
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(DEFINITION))
    return file


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A frozen study whose runs are processes of the stand-in."""
    (tmp_path / "fake.py").write_text(FAKE)

    def command(frozen, run):
        return [sys.executable, str(tmp_path / "fake.py"), str(frozen.folder(run)), run.name]

    monkeypatch.setattr(study, "JobPool", functools.partial(JobPool, command=command))

    def make(*names: str) -> Snapshot:
        definition = StudyDefinition.model_validate(DEFINITION)
        runs = [
            FrozenRun(n, "SGLD, small", {"steps": i}, [], "fake", f"s{i}", "d", {"seed": 0})
            for i, n in enumerate(names)
        ]
        frozen = Snapshot("two", definition, "now", "", [], runs, tmp_path)
        snapshot.save(frozen)
        return frozen

    return make


def states(frozen):
    return {run.name: study.state(frozen, run) for run in frozen.runs}


def launches(frozen):
    return [
        len((frozen.folder(run) / "launches").read_text()) // len("two1") for run in frozen.runs
    ]


def go(frozen, *arguments):
    return study.main(
        ["study", "two", "--output-dir", str(frozen.output_dir), "--jobs", "2", *arguments]
    )


def test_a_plan_is_every_combination_column_by_column():
    runs = list(plan(StudyDefinition.model_validate(DEFINITION), ["data_dir=d"]))
    assert [r.name for r in runs] == [
        "SGLD, small steps=60 seed=0",
        "SGLD, large steps=60",
        "SGLD, small steps=60 seed=1",
        "SGLD, small steps=80 seed=0",
        "SGLD, small steps=80 seed=1",
    ]
    assert runs[0].overrides == [
        "+experiment=mog", "smoke=true", "tracking=false", "offline=true", "inference.step_size=0.01", "steps=60", "seed=0",
        "data_dir=d",
    ]  # fmt: skip


def test_a_row_may_override_some_cells_and_name_no_experiment():
    row = {
        "label": "SGLD",
        "model": "sgld",
        "preset": "",
        "overrides": ["model=m"],
        "cells": {"steps": {80: ["seed=9"]}},
    }
    definition = DEFINITION | {"rows": [row], "grid": {"steps": [60, 80]}, "overrides": []}
    runs = list(plan(StudyDefinition.model_validate(definition), []))
    assert [r.overrides for r in runs] == [
        ["model=m", "steps=60"],
        ["model=m", "steps=80", "seed=9"],
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [DEFINITION["rows"][0]] * 2}, "SGLD, small occurs twice"),
        ({"reference": "SGLD, smal"}, "SGLD, smal is not a row, did you mean SGLD, small?"),
        ({"grid": {"inference.lr": [1]}}, "grid key inference.lr is neither its columns nor seed"),
        ({"tables": [{"name": "t", "title": "t", "columns": "steps", "better": "lower"}]}, "a grid key with one metric"),
        ({"rows": [{**DEFINITION["rows"][0], "cells": {"steps": {7: []}}}]}, "cells has steps=7, which is not in its grid"),
        ({"descripton": "typed wrongly"}, "bad.yaml: descripton: unknown key, did you mean description?"),
    ],
)  # fmt: skip
def test_mistakes_in_a_definition(tmp_path, change, message):
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(DEFINITION | change))
    with pytest.raises(ConfigError) as error:
        load_study(str(tmp_path / "bad.yaml"))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_study_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean sarcos_table"):
        load_study("sarcos_tabel")


def test_a_study_is_frozen_when_it_is_first_launched(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "launch", lambda *_: 0)
    arguments = ["study", str(path), "--output-dir", str(tmp_path)]
    assert study.main([*arguments, "--status"]) == 0
    assert snapshot.load("two", tmp_path) is None  # looking freezes nothing
    assert study.main(arguments) == 0
    frozen = snapshot.load("two", tmp_path)
    assert len(frozen.runs) == 5
    assert frozen.runs[0].config["inference"]["step_size"] == 0.01
    assert len({run.signature for run in frozen.runs}) == 5
    assert frozen.runs[0].config["steps"] == 60

    assert study.main(arguments) == 0
    assert "has changed" not in capsys.readouterr().out
    path.write_text(yaml.safe_dump(DEFINITION | {"grid": {"steps": [61]}}))
    assert study.main(arguments) == 0
    assert "has changed since it was frozen" in " ".join(capsys.readouterr().out.split())
    assert snapshot.load("two", tmp_path) == frozen  # the YAML changed, the study did not
    with pytest.raises(ConfigError, match="frozen with no overrides"):
        study.main([*arguments, "inference.burn_in=5"])
    assert study.main([*arguments, "--fresh"]) == 0
    assert [r.cell for r in snapshot.load("two", tmp_path).runs] == [{"steps": 61}, {"steps": 60}]
    assert study.main([*arguments, "inference.burn_in=5", "--as", "other"]) == 0
    assert all(r.config["inference"]["burn_in"] == 5 for r in snapshot.load("other", tmp_path).runs)


def test_runs_that_cannot_be_composed_are_left_out_and_named(path, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(study, "launch", lambda *_: 0)
    rows = [
        *DEFINITION["rows"],
        {"label": "HMC", "model": "hmc", "preset": "", "experiment": "no_such"},
    ]
    path.write_text(yaml.safe_dump(DEFINITION | {"rows": rows, "grid": {"steps": [60]}}))
    arguments = ["study", str(path), "--output-dir", str(tmp_path)]
    assert study.main(arguments) == 1, "a script must not take it for done"
    said = capsys.readouterr().out
    assert "1 of 3 runs cannot be composed" in said
    assert "refused  1 of its runs, which cannot be composed" in said
    assert f"runner report two --output-dir {tmp_path}" in said
    assert study.main([*arguments, "--only", "label=SGLD"]) == 0, "the others alone were asked for"
    assert "HMC steps=60" in said
    assert "no_such" in next(
        run.refused for run in snapshot.load("two", tmp_path).runs if run.refused
    )
    path.write_text(yaml.safe_dump(DEFINITION | {"rows": rows[2:]}))
    with pytest.raises(ConfigError, match="no run can be composed"):
        study.main(["study", str(path), "--as", "none", "--output-dir", str(tmp_path)])


def test_done_runs_are_skipped_and_a_crash_stops_no_other(made, capsys):
    frozen = made("a", "crash", "fail", "diverge", "b")
    assert go(frozen) == 1
    assert states(frozen) == {
        "a": "done",
        "crash": "crashed",
        "fail": "failed",
        "diverge": "diverged",
        "b": "done",
    }
    said = capsys.readouterr().out
    counts = re.search(r"study two: (.*)", said)  # in the order in which they ended
    assert counts
    assert sorted(counts[1].split(", ")) == [
        "1 crashed",
        "1 diverged",
        "1 failed",
        "2 done",
    ]
    assert "Cholesky failed" in said
    assert "exit code -9" in said

    assert (
        go(frozen) == 1
    )  # the failed one fails again, the crashed one gets through, a diverged one would diverge again
    assert states(frozen) == {
        "a": "done",
        "crash": "done",
        "fail": "failed",
        "diverge": "diverged",
        "b": "done",
    }
    assert launches(frozen) == [1, 2, 2, 1, 1]
    assert go(frozen, "--failed") == 1
    assert launches(frozen) == [1, 2, 3, 2, 1]
    assert study.main(["rerun", "--failed", "two", "--output-dir", str(frozen.output_dir)]) == 1
    assert launches(frozen) == [1, 2, 4, 3, 1]


def test_rerun_needs_failed_and_a_study_that_was_launched(tmp_path):
    with pytest.raises(ConfigError, match="--failed"):
        study.main(["rerun", "two"])
    with pytest.raises(ConfigError, match="never launched"):
        study.main(["rerun", "--failed", "two", "--output-dir", str(tmp_path)])


def test_where_runs_are_recorded_is_no_override(tmp_path):
    with pytest.raises(
        ConfigError,
        match="output_dir=here: where a study records its runs is said by --output-dir here",
    ):
        study.main(["study", "sarcos_table", "output_dir=here"])


def test_a_signal_is_handed_on_and_the_study_goes_on_later(made):
    frozen = made("a", "long 1", "long 2", "b")
    started = threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGTERM))
    started.start()
    assert go(frozen) == 143
    started.join()
    assert states(frozen) == {
        "a": "done",
        "long 1": "interrupted",
        "long 2": "interrupted",
        "b": "not started",
    }
    for run in frozen.runs[1:3]:
        assert frozen.facts(run)["error"] == "checkpointed"
    (frozen.output_dir / "fake.py").write_text(FAKE.replace("time.sleep(60)", "pass"))
    assert go(frozen) == 0
    assert set(states(frozen).values()) == {"done"}
    assert launches(frozen) == [1, 2, 2, 1]


def test_only_some_runs(made):
    frozen = made("a", "b", "c")
    assert go(frozen, "--only", "steps=0,2", "--only", "preset=small") == 0
    assert states(frozen) == {"a": "done", "b": "not started", "c": "done"}
    with pytest.raises(ConfigError, match="--only step=0: no such key, did you mean steps"):
        go(frozen, "--only", "step=0")
    with pytest.raises(ConfigError, match="--only steps=0,7: no run has 7"):
        go(frozen, "--only", "steps=0,7")


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
            "preset=variance 0.5, idle 0.1,unaware",
            {"preset": {"variance 0.5, idle 0.1", "unaware"}},
        ),
        ("preset=unaware|variance 0.5", {"preset": {"variance 0.5", "unaware"}}),
    ],
)
def test_pairs_and_alternatives_of_only(text, chosen):
    assert choice.parse_choice(text, FACTS) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("preset=unawere", "no run has unawere, did you mean unaware.*commas separate KEY=VALUE"),
        ("model=igp,presett=x", "no such key, did you mean preset.*keys: model, preset, label"),
        ("igp", "write KEY=VALUE, such as .*keys: model, preset, label; commas separate"),
    ],
)
def test_a_wrong_only_names_the_keys_and_the_separator(text, message):
    with pytest.raises(ConfigError, match=message):
        choice.parse_choice(text, FACTS)


def test_all_pairs_of_only_must_hold_and_a_repeated_key_adds_values(made):
    frozen = made("a", "b", "c")
    both = choice.select_runs(frozen, ["steps=0", "steps=2"])
    assert [run.name for run in both] == ["a", "c"]
    assert [run.name for run in choice.select_runs(frozen, ["steps=1,preset=small"])] == ["b"]
    large = replace(frozen.runs[0], name="d", row="SGLD, large", cell={"steps": 9})
    with pytest.raises(ConfigError, match="no run left, all pairs must hold; commas separate"):
        choice.select_runs(replace(frozen, runs=[*frozen.runs, large]), ["steps=0,preset=large"])


def test_runs_of_one_signature_are_run_once(made):
    frozen = made("a", "b")
    twice = Snapshot(**{**vars(frozen), "runs": [*frozen.runs, frozen.runs[0]]})
    assert [run.name for run in study.select_runs(twice, [])] == ["a", "b"]


def test_a_damaged_snapshot_is_a_mistake_in_one_line(made):
    frozen = made("a")
    snapshot.location("two", frozen.output_dir).write_text("runs: [")
    with pytest.raises(ConfigError, match=r"damaged.*--fresh"):
        snapshot.load("two", frozen.output_dir)


@pytest.mark.slow
def test_a_study_from_launch_to_report(path, tmp_path):
    def runner(*arguments):
        command = [
            sys.executable,
            "-m",
            "runner.commands.cli",
            *arguments,
            "--output-dir",
            str(tmp_path),
        ]
        return subprocess.run(command, capture_output=True, text=True)

    first = runner("study", str(path), "--jobs", "2")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "study two: 5 done" in first.stdout
    frozen = snapshot.load("two", tmp_path)
    facts = [frozen.facts(run) for run in frozen.runs]
    assert {f["study"] for f in facts} == {"two"}
    assert {f["threads"] for f in facts} == {1}
    again = runner("study", "two", "--jobs", "2")
    assert "running 0" in again.stdout
    assert [frozen.facts(run)["ended"] for run in frozen.runs] == [f["ended"] for f in facts]

    # a run that was killed: its state says running, no process holds it
    folder = frozen.folder(frozen.runs[0])
    killed = json.loads((folder / "run.json").read_text()) | {
        "state": "running",
        "finished": {},
        "result": {},
    }
    (folder / "run.json").write_text(json.dumps(killed))
    assert study.state(frozen, frozen.runs[0]) == "crashed"
    third = runner("study", "two")
    assert "running 1" in third.stdout
    result = frozen.facts(frozen.runs[0])["result"]
    assert repeatable(result) == repeatable(facts[0]["result"])  # bit-identical

    assert runner("report", "two").returncode == 0
    markdown = (tmp_path / "two" / "report" / "two_smoke.md").read_text()
    assert "| SGLD | small | 60 | – |" in markdown
    assert "not comparable" not in markdown


@pytest.mark.parametrize(("code", "stopped", "counted"), [
    (-signal.SIGTERM, True, "interrupted"),  # while it was importing, before it could note a signal
    (128 + signal.SIGTERM, True, "interrupted"),
    (-signal.SIGKILL, True, "interrupted"),  # a second Ctrl-C
    (-signal.SIGTERM, False, "failed"),
    (2, True, "failed"),  # it was refused, whatever was pressed
])  # fmt: skip
def test_ctrl_c_is_no_failure(made, tmp_path, code, stopped, counted):
    frozen = made("a")
    (tmp_path / "log").write_text("")
    shown = StudyDisplay(frozen, 1)
    shown.report_end(frozen.runs[0], code, 1.0, tmp_path / "log", stopped)
    assert shown.counts == {counted: 1}
