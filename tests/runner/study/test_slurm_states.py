"""States of Slurm's jobs from what sacct and squeue print: accounting on, off, late, or silent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner.study.cluster import slurm_states
from runner.study.cluster.slurm_states import CAUSES, ENDED, SlurmStates, read_states
from runner.study.cluster.submitit_engine import QueuedJob

OFF = ("", "Slurm accounting storage is disabled\n", 1)
# squeue --array --states=all --noheader --format='%i|%T', of Slurm 22.05
ARRAY = """1_2|PENDING
1_1|CANCELLED
1_0|RUNNING
"""


class Programs:
    """Answers of the programs, (output, errors, exit code), and the calls they got."""

    def __init__(self, monkeypatch, **answers):
        self.answers = answers
        self.calls: list[str] = []
        monkeypatch.setattr(slurm_states, "_call", self)
        monkeypatch.setattr(slurm_states, "SHORTEST_INTERVAL", -1.0)
        monkeypatch.setattr(slurm_states, "LONGEST_INTERVAL", -1.0)

    def __call__(self, command):
        self.calls.append(command[0])
        if (answer := self.answers[command[0]]) is None:
            return None
        output, errors, code = answer
        return subprocess.CompletedProcess(command, code, output, errors)


def test_the_controller_is_asked_where_accounting_is_off(monkeypatch):
    programs = Programs(monkeypatch, sacct=OFF, squeue=(ARRAY, "", 0))
    states = SlurmStates()
    found = [states.state(f"1_{i}") for i in range(4)]
    assert found == ["RUNNING", "CANCELLED", "PENDING", "FORGOTTEN"]
    assert programs.calls.count("sacct") == 1  # it stays off
    states.state("1_1")
    assert programs.calls.count("squeue") == 3  # the ended one is not asked for again


def test_jobs_that_the_controller_has_forgotten_have_ended(monkeypatch):
    gone = ("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    Programs(monkeypatch, sacct=OFF, squeue=gone)
    assert SlurmStates().state("77_0") in ENDED


@pytest.mark.parametrize(
    "silence", [None, ("", "slurm_load_jobs error: Unable to contact slurm controller\n", 1)]
)
def test_a_silent_controller_is_reported_once_and_ends_no_job(monkeypatch, capsys, silence):
    programs = Programs(monkeypatch, sacct=OFF, squeue=(ARRAY, "", 0))
    states = SlurmStates()
    assert states.state("1_0") == "RUNNING"
    programs.answers["squeue"] = silence
    assert [states.state("1_0") for _ in range(3)] == ["RUNNING"] * 3
    assert capsys.readouterr().out.count("Slurm does not answer") == 1


@pytest.mark.parametrize(
    ("accounting", "controller", "state"),
    [
        ("COMPLETED", "", "COMPLETED"),  # the controller is not asked
        ("CANCELLED by 1000", "", "CANCELLED"),
        ("CANCELLED+", "", "CANCELLED"),
        ("OUT_OF_MEMORY", "", "OUT_OF_MEMORY"),
        ("NODE_FAIL", "5_0|PENDING", "PENDING"),  # back in the queue
        ("NODE_FAIL", "5_0|NODE_FAIL", "NODE_FAIL"),  # not requeued
        ("PREEMPTED", "", "PREEMPTED"),  # ended a while ago
        ("REQUEUED", "5_0|RUNNING", "RUNNING"),
    ],
)
def test_the_controller_decides_whether_a_job_goes_on(monkeypatch, accounting, controller, state):
    table = f"JobID|State|NodeList\n5_0|{accounting}|node1\n5_0.batch|FAILED|node1\n"
    Programs(monkeypatch, sacct=(table, "", 0), squeue=(controller, "", 0))
    assert SlurmStates().state("5_0") == state


def test_one_call_answers_for_an_array(monkeypatch):
    programs = Programs(monkeypatch, sacct=OFF, squeue=(ARRAY, "", 0))
    monkeypatch.setattr(slurm_states, "SHORTEST_INTERVAL", 60.0)
    monkeypatch.setattr(slurm_states, "LONGEST_INTERVAL", 60.0)
    states = SlurmStates()
    for _ in range(3):
        assert [states.state(f"1_{i}") for i in (0, 1, 2)] == ["RUNNING", "CANCELLED", "PENDING"]
    assert programs.calls == ["sacct", "squeue"]


def test_ranges_of_an_array_are_spread():
    assert read_states("JobID|State\n9_[2-3%2]|PENDING\n") == {"9_2": "PENDING", "9_3": "PENDING"}


@pytest.mark.parametrize("state", sorted(CAUSES))
def test_a_job_that_left_no_result_ends_with_its_cause(tmp_path, monkeypatch, state):
    paths = SimpleNamespace(result_pickle=Path(tmp_path / "result.pkl"))
    states = SimpleNamespace(state=lambda job: state)
    job = QueuedJob(SimpleNamespace(job_id="1_0", paths=paths), states)
    assert job.poll() is None  # a shared disk may show the result late
    monkeypatch.setattr("runner.study.cluster.submitit_engine.RESULT_SECONDS", 0.0)
    assert job.poll() == 1
    assert job.explain_end() == f"slurm 1_0 {state}: {CAUSES[state]}"


def test_a_job_that_is_back_in_the_queue_goes_on(tmp_path):
    paths = SimpleNamespace(result_pickle=Path(tmp_path / "result.pkl"))
    states = SimpleNamespace(state=lambda job: "PENDING")
    assert QueuedJob(SimpleNamespace(job_id="1_0", paths=paths), states).poll() is None
