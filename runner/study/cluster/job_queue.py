"""Runs of a study as jobs of an engine (submitit, Ray).

They are submitted together, recorded in ``jobs.json``, and awaited.  A job that is still in the
queue from an earlier command is awaited and not submitted again.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from runner.disk.atomic import write_text
from runner.disk.plain_file import parse_json
from runner.study.cluster.cluster_job import ClusterJob, create_cluster_job
from runner.study.cluster.launcher import Launcher, engine
from runner.study.cluster.submitit_engine import ENDED
from runner.study.executor import GRACE_SECONDS, Executor, RunningProcess
from runner.study.left_going import DetachedRun
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import out

FINISHED_JOB_STATES = ENDED | {"UNKNOWN"}


@cache
def _known_engine(name: str, folder: Path) -> Any:
    """Engine of earlier jobs, shared by all of them so that one call to Slurm suffices."""
    return engine(Launcher(name), folder)


@dataclass(frozen=True)
class SubmittedJobs:
    """Most recently submitted jobs of a study."""

    snapshot: Snapshot

    @property
    def file(self) -> Path:
        return self.snapshot.file.parent / "jobs.json"

    @cached_property
    def entries(self) -> dict[str, dict[str, str]]:
        """Engine and number of every job by signature."""
        with suppress(OSError, ValueError):
            content = parse_json(self.file.read_text())
            return content if isinstance(content, dict) else {}
        return {}

    def find_queued(self, run: FrozenRun) -> tuple[str, str, str] | None:
        """(engine, number, state) of a run's unfinished job, according to the engine."""
        entry = self.entries.get(run.signature)
        if entry is None or entry.get("engine") not in ("slurm", "slurm_local"):
            return None
        engine = _known_engine(entry["engine"], self.file.with_name("submitit"))
        state = engine.find_job(entry["job"]).state()
        return None if state in FINISHED_JOB_STATES else (entry["engine"], entry["job"], state)

    def words(self, run: FrozenRun, state: str) -> str:
        """Text of ``--status`` for a run: the states of the run and of its queued job."""
        queued = None if run.refused or state == "done" else self.find_queued(run)
        if queued is None:
            return state
        name, number, job_state = queued
        return f"{'running' if job_state == 'RUNNING' or state == 'running' else 'queued'} ({name} {number})"


@dataclass
class JobQueue(Executor):
    """Submitter of runs that waits for them, the counterpart of ``JobPool`` for clusters.

    Ctrl-C and SIGTERM end the waiting: queued jobs continue, and tasks of Ray are stopped after a
    checkpoint."""

    poll_seconds = 0.5
    launcher: Launcher = field(kw_only=True)

    @cached_property
    def engine(self) -> Any:
        return engine(self.launcher, self.snapshot.file.parent / "submitit")

    def start_waiting(self) -> None:
        """Submit all runs, except those that are queued or running elsewhere."""
        runs = self.waiting
        if not runs:
            return
        self.waiting = []
        earlier_jobs = SubmittedJobs(self.snapshot)
        jobs: dict[str, Any] = {}
        new: dict[str, ClusterJob] = {}
        for run in runs:
            queued = earlier_jobs.find_queued(run)
            leftover = DetachedRun(self.snapshot, run)
            if queued is not None and queued[0] == self.engine.name:
                jobs[run.signature] = self.engine.find_job(queued[1])
            elif leftover.going():
                jobs[run.signature] = leftover
            else:
                new[run.signature] = create_cluster_job(self.snapshot, run)
        if new:
            jobs.update(zip(new, self.engine.submit(list(new.values())), strict=True))
        entries = {key: {"engine": self.engine.name, "job": jobs[key].id} for key in new}
        write_text(earlier_jobs.file, json.dumps(earlier_jobs.entries | entries, indent=1))
        for run in runs:
            self.add(run, jobs[run.signature])

    def reap(self) -> None:
        """Remove and report jobs that have ended."""
        for job in list(self.going):
            code = job.process.poll()
            if code is not None and self._has_ended(job):
                self.going.remove(job)
                self.end(job, code)

    def _has_ended(self, one: RunningProcess) -> bool:
        """True if a job without a result has also ended according to the record.

        The cause, which the job could not write, is printed and added to the log of the run.  The
        lease of a run on a lost node expires after a minute.
        """
        cause = one.process.explain_end()
        if not cause:
            return True
        if DetachedRun(self.snapshot, one.run).going():
            return False
        if self.snapshot.state(one.run) != "done":
            out.print(f"note     {one.run.name}: {cause}", style="yellow")
        one.log.parent.mkdir(parents=True, exist_ok=True)
        with one.log.open("a") as file:
            file.write(f"{cause}\n")
        return True

    def stop(self) -> None:
        """Leave queued jobs and stop others."""
        if self.engine.outlives:
            self.left = len(self.going)
            return
        for job in self.going:
            job.process.stop()
        deadline = time.monotonic() + GRACE_SECONDS
        while (
            any(DetachedRun(self.snapshot, job.run).going() for job in self.going)
            and time.monotonic() < deadline
        ):
            time.sleep(self.poll_seconds)
        for job in self.going:
            self.end(job, 128 + int(self.stopped_by or 0))
