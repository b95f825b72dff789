"""Runs of a study as cluster jobs: submitted once, awaited, requeued, collected, and listed by
``--status``."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.made_studies import make_run, make_snapshot

from runner.errors import ConfigError
from runner.study import display, find_snapshot, snapshot, study
from runner.study.cluster import job_queue
from runner.study.cluster.cluster_job import ClusterJob
from runner.study.cluster.job_queue import JobQueue
from runner.study.cluster.launcher import Launcher, split_launcher
from runner.study.display import StudyDisplay


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["hydra.launcher.partition=gpu"],
            "hydra.launcher.partition=gpu: the launcher is missing; add hydra/launcher=slurm",
        ),
        (["hydra/launcher=slrm"], "slrm"),
        (["hydra/launcher=slurm", "hydra.launcher.partitoin=gpu"], "partitoin"),
    ],
)
def test_launcher_errors_are_one_line(words, message):
    with pytest.raises(ConfigError) as error:
        split_launcher(words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_missing_launcher_package_names_its_extra():
    with pytest.raises(
        ConfigError, match=r"hydra/launcher=ray: not installed; pip install 'bayes-runner\[ray\]'"
    ):
        split_launcher(["hydra/launcher=ray"])


def test_launcher_is_removed_from_the_overrides():
    launcher, overrides = split_launcher(
        ["steps=3", "hydra/launcher=slurm", "hydra.launcher.partition=gpu"]
    )
    assert overrides == ["steps=3"]
    assert (launcher.engine, launcher.keys["partition"]) == ("slurm", "gpu")
    # in our preset a job resumes after its time limit
    assert launcher.keys["max_num_timeout"] == 10
    assert split_launcher(["hydra/launcher=joblib", "hydra.launcher.n_jobs=3"])[0].jobs == 3


class FakeTicket:
    def __init__(self, engine, number):
        self.engine = engine
        self.id = str(number)

    def state(self):
        return "FINISHED" if self.id in self.engine.codes else "PENDING"

    def poll(self):
        return self.engine.codes.get(self.id)

    def explain_end(self):
        return ""

    def stop(self):
        self.engine.codes[self.id] = 143


class FakeEngine:
    """A queue in which the test determines the end of jobs."""

    name = "slurm"
    outlives = True

    def __init__(self):
        self.submitted: list[ClusterJob] = []
        self.codes: dict[str, int] = {}

    def submit(self, jobs):
        first = len(self.submitted)
        self.submitted += jobs
        return [FakeTicket(self, first + i) for i in range(len(jobs))]

    def find_job(self, number):
        return FakeTicket(self, number)


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A study with two runs of three replicates, and its queue."""
    fake = FakeEngine()
    monkeypatch.setattr(job_queue, "engine", lambda launcher, folder: fake)
    monkeypatch.setattr(JobQueue, "poll_seconds", 0.01)
    config = {"seed": 0, "replicates": 3, "threads": 1}
    runs = [replace(make_run(name, **config), signature=f"s{name}") for name in "ab"]
    frozen = replace(make_snapshot(tmp_path, *runs), name="two")
    snapshot.save(frozen)
    ended: list[tuple[str, int]] = []

    def make_queue():
        end = lambda job, code, *_: ended.append((job.run.name, code))  # noqa: E731
        return JobQueue(frozen, end, launcher=Launcher("slurm"))

    return frozen, fake, make_queue, ended


def test_runs_end_like_their_jobs(queue):
    frozen, fake, make_queue, ended = queue
    cluster = make_queue()
    order = iter([("1", 1), ("0", 0)])
    cluster.on_poll = lambda _: fake.codes.update([next(order)] if len(ended) < 2 else [])
    cluster.go(frozen.runs)
    assert [Path(job.folder).name for job in fake.submitted] == ["sa", "sb"]
    assert ended == [("b", 1), ("a", 0)]


def test_queued_runs_are_awaited_and_not_submitted_again(queue):
    frozen, fake, make_queue, ended = queue
    cluster = make_queue()
    cluster.on_poll = lambda _: cluster.note_signal(signal.SIGINT, None)
    cluster.go(frozen.runs)
    assert (cluster.left, ended, len(fake.submitted)) == (2, [], 2)  # they continue without us
    state = job_queue.SubmittedJobs(frozen).words(frozen.runs[0], "not started")
    assert state == "queued (slurm 0)"
    again = make_queue()
    again.on_poll = lambda _: fake.codes.update({"0": 0, "1": 0})
    again.go(frozen.runs)
    assert len(fake.submitted) == 2
    assert ended == [("a", 0), ("b", 0)]
    assert job_queue.SubmittedJobs(frozen).words(frozen.runs[0], "not started") == "not started"


def test_status_shows_the_state_of_a_job(queue, capsys, monkeypatch):
    frozen, _fake, make_queue, _ended = queue
    cluster = make_queue()
    cluster.on_poll = lambda _: cluster.note_signal(signal.SIGTERM, None)
    cluster.go(frozen.runs)
    monkeypatch.setattr(find_snapshot, "_has_changed", lambda *_: False)
    assert study.main(["study", "two", "--output-dir", str(frozen.output_dir), "--status"]) == 0
    assert "queued (slurm 1)" in capsys.readouterr().out


def test_job_that_failed_before_its_start_is_reported(queue, capsys, monkeypatch):
    """Without log and record, the engine's cause becomes the only line of the log."""
    frozen, fake, make_queue, _ = queue
    monkeypatch.setattr(
        FakeTicket, "explain_end", lambda self: "slurm 0 CANCELLED" if self.id == "0" else ""
    )
    shown = StudyDisplay(frozen, 2)
    cluster = make_queue()
    cluster.on_end = shown.report_end
    order = iter([("0", 1), ("1", 0)])
    cluster.on_poll = lambda _: fake.codes.update([next(order)])
    cluster.go(frozen.runs)
    printed = " ".join(capsys.readouterr().out.split())
    assert "note a: slurm 0 CANCELLED" in printed
    assert "exit code 1: slurm 0 CANCELLED log:" in printed
    assert shown.counts.total() == 2
    log = frozen.output_dir / "studies/two/logs/sa.log"
    assert log.read_text() == "slurm 0 CANCELLED\n"


def test_lost_job_ends_when_the_lease_of_its_run_expires(queue, monkeypatch):
    frozen, fake, make_queue, ended = queue
    leases = iter([True, False])
    monkeypatch.setattr(FakeTicket, "explain_end", lambda self: "slurm 0 NODE_FAIL")
    cluster = make_queue()
    cluster.waiting = frozen.runs[:1]
    cluster.start_waiting()
    monkeypatch.setattr(job_queue.DetachedRun, "going", lambda self: next(leases))
    fake.codes["0"] = 1
    cluster.reap()
    assert not ended
    cluster.reap()
    assert ended == [("a", 1)]


def test_process_without_a_log_has_a_reason(tmp_path):
    assert display._reason(1, tmp_path / "none.log") == "exit code 1: no output"


def test_run_process_does_not_receive_slurms_warning(tmp_path):
    """Slurm sends it to every process of a step, and its default action terminates them."""
    job = ClusterJob("", "", "", str(tmp_path / "log"))
    process = job._start([sys.executable, "-c", "input(); print('alive')"])
    assert job.process is process
    os.kill(process.pid, signal.SIGUSR2)
    process.communicate(b"\n", timeout=20)
    assert process.returncode == 0
    assert (tmp_path / "log").read_text() == "alive\n"
    assert signal.SIGUSR2 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_job_stops_its_process_before_slurms_limit(tmp_path):
    job = ClusterJob("", "", "", str(tmp_path / "log"), grace=0.3)
    text = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); input()"
    process = job._start([sys.executable, "-c", text])
    while not (tmp_path / "log").read_text():
        time.sleep(0.1)
    began = time.monotonic()
    job.stop()
    assert time.monotonic() - began < 5
    process.kill()
    process.wait()
