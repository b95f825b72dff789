"""Studies: frozen definitions, skipped finished runs, isolated crashes, forwarded signals, and reruns
of failures."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
import yaml
from support.runs.configured import repeatable
from support.runs.made_studies import STEP_SIZES as DEFINITION

from runner.errors import ConfigError
from runner.study import snapshot, study
from runner.study.display import StudyDisplay
from runner.study.executor import RunningProcess
from runner.study.snapshot import Snapshot


@pytest.fixture
def path(tmp_path):
    """Definition in a user's file."""
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(DEFINITION))
    return file


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


def test_study_is_frozen_at_its_first_launch(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "launch", lambda *_: 0)
    arguments = ["study", str(path), "--output-dir", str(tmp_path)]
    assert study.main([*arguments, "--status"]) == 0
    assert snapshot.load("two", tmp_path) is None  # showing the plan freezes nothing
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
    with pytest.raises(ConfigError, match="frozen with no overrides; choose another name"):
        study.main([*arguments, "inference.burn_in=5"])
    assert study.main([*arguments, "--fresh"]) == 0
    assert [r.cell for r in snapshot.load("two", tmp_path).runs] == [{"steps": 61}, {"steps": 60}]
    assert study.main([*arguments, "inference.burn_in=5", "--as", "other"]) == 0
    assert all(r.config["inference"]["burn_in"] == 5 for r in snapshot.load("other", tmp_path).runs)


def test_runs_that_cannot_be_composed_are_skipped_and_named(path, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(study, "launch", lambda *_: 0)
    rows = [
        *DEFINITION["rows"],
        {"label": "HMC", "model": "hmc", "preset": "", "experiment": "no_such"},
    ]
    path.write_text(yaml.safe_dump(DEFINITION | {"rows": rows, "grid": {"steps": [60]}}))
    arguments = ["study", str(path), "--output-dir", str(tmp_path)]
    assert study.main(arguments) == 1, "a script must not take it for done"
    printed = capsys.readouterr().out
    assert "1 of 3 runs cannot be composed" in printed
    assert "refused  1 runs that cannot be composed" in printed
    assert f"runner report two --output-dir {tmp_path}" in printed
    assert study.main([*arguments, "--only", "label=SGLD"]) == 0, "only the others were requested"
    assert "HMC steps=60" in printed
    assert "no_such" in next(
        run.refused for run in snapshot.load("two", tmp_path).runs if run.refused
    )
    path.write_text(yaml.safe_dump(DEFINITION | {"rows": rows[2:]}))
    with pytest.raises(ConfigError, match="no run can be composed"):
        study.main(["study", str(path), "--as", "none", "--output-dir", str(tmp_path)])


def test_done_runs_are_skipped_and_a_crash_stops_no_other(make_study, capsys):
    names = ("a", "crash", "fail", "diverge", "b")
    ends = ["done", "crashed", "failed", "diverged", "done"]
    frozen = make_study(*names)
    assert go(frozen) == 1
    assert states(frozen) == dict(zip(names, ends, strict=True))
    printed = capsys.readouterr().out
    counts = re.search(r"study two: (.*)", printed)  # in the order of their ends
    assert sorted(counts[1].split(", ")) == ["1 crashed", "1 diverged", "1 failed", "2 done"]
    assert "Cholesky failed" in printed
    assert "exit code -9" in printed

    # the failed run fails again, the crashed one succeeds, a diverged one would diverge again
    assert go(frozen) == 1
    assert states(frozen) == dict(zip(names, ends, strict=True)) | {"crash": "done"}
    assert launches(frozen) == [1, 2, 2, 1, 1]
    assert go(frozen, "--failed") == 1
    assert launches(frozen) == [1, 2, 3, 2, 1]
    assert study.main(["rerun", "--failed", "two", "--output-dir", str(frozen.output_dir)]) == 1
    assert launches(frozen) == [1, 2, 4, 3, 1]


def test_signal_is_forwarded_and_the_study_resumes_later(make_study):
    frozen = make_study("a", "long 1", "long 2", "b")
    started = threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGTERM))
    started.start()
    assert go(frozen) == 143
    started.join()
    ends = ["done", "interrupted", "interrupted", "not started"]
    assert list(states(frozen).values()) == ends
    for run in frozen.runs[1:3]:
        assert frozen.facts(run)["error"] == "checkpointed"
    (frozen.output_dir / "fake.py").write_text(
        (frozen.output_dir / "fake.py").read_text().replace("time.sleep(60)", "pass")
    )
    assert go(frozen) == 0
    assert set(states(frozen).values()) == {"done"}
    assert launches(frozen) == [1, 2, 2, 1]


def test_selected_runs_are_launched(make_study):
    frozen = make_study("a", "b", "c")
    assert go(frozen, "--only", "steps=0,2", "--only", "preset=small") == 0
    assert states(frozen) == {"a": "done", "b": "not started", "c": "done"}


def test_equal_signatures_are_run_once(make_study):
    frozen = make_study("a", "b")
    twice = Snapshot(**{**vars(frozen), "runs": [*frozen.runs, frozen.runs[0]]})
    assert [run.name for run in study.select_runs(twice, [])] == ["a", "b"]


def test_damaged_snapshot_is_an_error_of_one_line(make_study):
    frozen = make_study("a")
    snapshot.location("two", frozen.output_dir).write_text("runs: [")
    with pytest.raises(ConfigError, match=r"damaged.*--fresh"):
        snapshot.load("two", frozen.output_dir)


@pytest.mark.slow
def test_study_runs_from_launch_to_report(path, tmp_path):
    def runner(*arguments):
        command = [sys.executable, "-m", "runner.commands.cli", *arguments]
        command += ["--output-dir", str(tmp_path)]
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

    # a killed run: its recorded state is running, but no process holds it
    folder = frozen.folder(frozen.runs[0])
    killed = json.loads((folder / "run.json").read_text())
    killed |= {"state": "running", "finished": {}, "result": {}}
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


@pytest.mark.parametrize(
    ("code", "stopped", "counted"),
    [
        (
            -signal.SIGTERM,
            True,
            "interrupted",
        ),  # while it was importing, before it could note a signal
        (128 + signal.SIGTERM, True, "interrupted"),
        (-signal.SIGKILL, True, "interrupted"),  # a second Ctrl-C
        (-signal.SIGTERM, False, "failed"),
        (2, True, "failed"),  # refused, with or without Ctrl-C
    ],
)
def test_ctrl_c_is_not_a_failure(make_study, tmp_path, code, stopped, counted):
    frozen = make_study("a")
    (tmp_path / "log").write_text("")
    shown = StudyDisplay(frozen, 1)
    shown.report_end(RunningProcess(frozen.runs[0], None, 0.0, tmp_path / "log"), code, stopped)
    assert shown.counts == {counted: 1}
