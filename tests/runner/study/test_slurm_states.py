"""States of Slurm's jobs from the output of squeue."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner.study.cluster import submitit_engine
from runner.study.cluster.submitit_engine import CAUSES, ENDED, QueuedJob, SlurmStates

# squeue --array --states=all --noheader --format='%i|%T', of Slurm 22.05
ARRAY = """1_2|PENDING
1_1|CANCELLED
1_0|RUNNING
"""


class Squeue:
    """Stand-in for squeue with replies (output, errors, exit code) and a count of calls."""

    def __init__(self, monkeypatch, answer):
        self.answer = answer
        self.calls = 0
        monkeypatch.setattr(submitit_engine, "_call", self)
        monkeypatch.setattr(submitit_engine, "SHORTEST_INTERVAL", -1.0)
        monkeypatch.setattr(submitit_engine, "LONGEST_INTERVAL", -1.0)

    def __call__(self, command):
        self.calls += 1
        if self.answer is None:
            raise FileNotFoundError("squeue")
        output, errors, code = self.answer
        return subprocess.CompletedProcess(command, code, output, errors)


def test_controller_is_queried_until_a_job_has_ended(monkeypatch):
    squeue = Squeue(monkeypatch, (ARRAY, "", 0))
    states = SlurmStates()
    states_found = [states.state(f"1_{i}") for i in range(4)]
    assert states_found == ["RUNNING", "CANCELLED", "PENDING", "FORGOTTEN"]
    states.state("1_1")
    states.state("1_3")
    assert squeue.calls == 3  # ended jobs are not queried again
    squeue.answer = ("1_0|NODE_FAIL\n1_2|PENDING\n", "", 0)
    assert [states.state(f"1_{i}") for i in range(4)] == [
        "NODE_FAIL",
        "CANCELLED",
        "PENDING",
        "FORGOTTEN",
    ]


def test_jobs_forgotten_by_the_controller_have_ended(monkeypatch):
    gone = ("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    Squeue(monkeypatch, gone)
    assert SlurmStates().state("77_0") in ENDED


@pytest.mark.parametrize(
    "silence", [None, ("", "slurm_load_jobs error: Unable to contact slurm controller\n", 1)]
)
def test_silent_controller_is_reported_once_and_ends_no_job(monkeypatch, capsys, silence):
    squeue = Squeue(monkeypatch, (ARRAY, "", 0))
    states = SlurmStates()
    assert states.state("1_0") == "RUNNING"
    squeue.answer = silence
    assert [states.state("1_0") for _ in range(3)] == ["RUNNING"] * 3
    assert capsys.readouterr().out.count("Slurm does not respond") == 1


def test_one_call_covers_an_array(monkeypatch):
    squeue = Squeue(monkeypatch, (ARRAY, "", 0))
    monkeypatch.setattr(submitit_engine, "SHORTEST_INTERVAL", 60.0)
    monkeypatch.setattr(submitit_engine, "LONGEST_INTERVAL", 60.0)
    states = SlurmStates()
    for _ in range(3):
        assert [states.state(f"1_{i}") for i in (0, 1, 2)] == ["RUNNING", "CANCELLED", "PENDING"]
    assert squeue.calls == 1


@pytest.mark.parametrize("state", sorted(CAUSES))
def test_job_without_a_result_ends_with_its_cause(tmp_path, monkeypatch, state):
    paths = SimpleNamespace(result_pickle=Path(tmp_path / "result.pkl"))
    states = SimpleNamespace(state=lambda job: state)
    job = QueuedJob(SimpleNamespace(job_id="1_0", paths=paths), states)
    assert job.poll() is None  # the result may appear late on a shared disk
    monkeypatch.setattr("runner.study.cluster.submitit_engine.RESULT_SECONDS", 0.0)
    assert job.poll() == 1
    assert job.explain_end() == f"slurm 1_0 {state}: {CAUSES[state]}"


def test_requeued_job_continues(tmp_path):
    paths = SimpleNamespace(result_pickle=Path(tmp_path / "result.pkl"))
    states = SimpleNamespace(state=lambda job: "PENDING")
    assert QueuedJob(SimpleNamespace(job_id="1_0", paths=paths), states).poll() is None
