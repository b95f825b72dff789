"""A run killed at any moment and resumed is bit-identical to an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.runs.configured import read_records, repeatable

from components.problems.supervised import Supervised
from runner.errors import RunFailure
from runner.execution import checkpoint
from runner.execution.execute import run
from runner.execution.signals import RunInterruptedError
from runner.record import folders
from runner.record.facts import read

RUNNER = str(Path(sys.executable).parent / "runner")
GAME = [
    "+experiment=friend_or_foe",
    "replicates=8",
    "checkpoint_every=100",
    "eval_every=2000",
    "record_every=50",
]


def _folder(output_dir: Path) -> Path:
    (folder,) = folders.runs(output_dir)
    return folder


@pytest.fixture(scope="module")
def undisturbed_record(tmp_path_factory):
    """Record of an uninterrupted run."""
    from runner.compose.compose import compose
    from runner.compose.job import prepare

    output_dir = tmp_path_factory.mktemp("undisturbed")
    run(prepare(compose([*GAME, f"output_dir={output_dir}", "tracking=false"])))
    return _folder(output_dir)


@pytest.mark.parametrize(
    "signum",
    [
        signal.SIGKILL,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_killed_run_resumes_when_repeated(tmp_path, undisturbed_record, signum):
    command = [RUNNER, *GAME, f"output_dir={tmp_path}", "tracking=false"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as executed:
        deadline = time.monotonic() + 60
        while (
            len(list(tmp_path.glob("*/*/checkpoints/*.json"))) < 2 and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        executed.send_signal(signum)
        _, error = executed.communicate(timeout=60)
    facts = read(_folder(tmp_path))
    if signum == signal.SIGKILL:
        assert facts["state"] == "running"
    else:
        assert executed.returncode == 128 + signum
        assert facts["state"] == "interrupted"
        assert "the same command resumes the run" in error
    again = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert again.returncode == 0, again.stderr
    assert "resumed at step" in again.stdout
    folder = _folder(tmp_path)
    assert read(folder)["state"] == "done"
    assert repeatable(read(folder)["result"]) == repeatable(read(undisturbed_record)["result"])
    assert [line for line in read_records(folder) if line["phase"] != "train"] == [
        line for line in read_records(undisturbed_record) if line["phase"] != "train"
    ]


def test_runner_resume_needs_no_command_line(
    make_job, prune, tmp_path, monkeypatch, undisturbed_record
):
    from runner.commands import resume

    job = make_job(*GAME)
    prune(job)
    assert read(job.folder)["state"] == "pruned"
    monkeypatch.chdir(tmp_path)
    assert resume.main(["resume", job.signature[:6]]) == 0
    assert repeatable(read(job.folder)["result"]) == repeatable(read(undisturbed_record)["result"])


def test_evaluation_frequency_does_not_change_training(make_job, undisturbed_record):
    _, result = run(make_job(*GAME, "eval_every=333"))
    assert repeatable(result) == repeatable(read(undisturbed_record)["result"])


TOY = ["+experiment=multitask_toy", "smoke=true", "steps=6", "eval_every=4", "replicates=2"]


@pytest.mark.parametrize(("evaluation", "step"), [(1, 4), (2, 6), (4, 6)])
def test_signal_during_an_evaluation_checkpoints_first(
    make_job, tmp_path, monkeypatch, evaluation, step
):
    """A signal during an intermediate evaluation first checkpoints the step; the possibly long last
    evaluation is aborted immediately."""
    whole, result = run(make_job(*TOY, f"output_dir={tmp_path / 'whole'}"))
    score = Supervised.score
    asked = []
    remaining = []

    def score_then_interrupt(self, posterior, rng):
        asked.append(1)
        if len(asked) == evaluation:
            os.kill(os.getpid(), signal.SIGTERM)
        scores = score(self, posterior, rng)
        remaining.append(len(asked))
        return scores

    monkeypatch.setattr(Supervised, "score", score_then_interrupt)
    job = make_job(*TOY)
    with pytest.raises(RunInterruptedError, match=f"at step {step}"):
        run(job)
    assert (evaluation in remaining) == (step == 4)
    assert read(job.folder)["state"] == "interrupted"
    assert sorted((job.folder / "checkpoints").glob("*.json"))[-1].stem.endswith(str(step))
    _, finished = run(job)
    assert repeatable(finished) == repeatable(result)
    assert read_records(job.folder) == read_records(whole.job.folder)


def test_finished_run_is_not_repeated(make_job):
    job = make_job(*GAME, "smoke=true")
    _, first = run(job)
    stamp = (job.folder / "metrics.jsonl").stat().st_mtime_ns
    executed, second = run(job)
    assert executed.was_done
    assert first == second
    assert (job.folder / "metrics.jsonl").stat().st_mtime_ns == stamp


def test_fresh_option_repeats_a_run(make_job):
    run(make_job(*GAME, "smoke=true"))
    executed, _ = run(make_job(*GAME, "smoke=true", "fresh=true"))
    assert not executed.was_done


def test_full_disk_is_one_line_and_loses_nothing(make_job, monkeypatch):
    job = make_job(*GAME)
    real = checkpoint.write_bytes
    calls = []

    def full(path, content):
        calls.append(path)
        if (
            path.suffix == ".safetensors"
            and len([c for c in calls if c.suffix == ".safetensors"]) > 3
        ):
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(checkpoint, "write_bytes", full)
    with pytest.raises(
        RunFailure,
        match=r"disk full: .*; free some space, then repeat the command",
    ):
        run(job)
    monkeypatch.setattr(checkpoint, "write_bytes", real)
    facts, _, complaints = checkpoint.load_newest(job.folder / "checkpoints", job.signature)
    assert facts["step"] == 300
    assert complaints == []
    assert read(job.folder)["state"] == "failed"


def test_record_is_complete(undisturbed_record):
    facts = read(undisturbed_record)
    assert {
        "git",
        "versions",
        "hardware",
        "threads",
        "command",
        "started",
        "ended",
        "seconds",
        "usage",
    } <= set(facts)
    assert facts["choice"] == {
        "dataset": "friend_or_foe",
        "model": "q_table",
        "inference": "level_k",
        "attacker": "exponential_smoother",
    }
    assert all(len(v) == 8 for v in facts["result"].values())
    assert (undisturbed_record / "config.yaml").exists()
    assert list((undisturbed_record / "figures").glob("*.png"))
    assert "gallego2021" in (undisturbed_record / "references.bib").read_text()
    assert (
        json.loads((undisturbed_record / "metrics.jsonl").read_text().splitlines()[-1])["phase"]
        == "final"
    )
