"""Runs of a study as jobs of an engine (submitit, Ray).

They are submitted together, kept in ``jobs.json``, and waited for.

A job that is still in the queue of an earlier command is waited for, and not submitted
again.
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
    """Engine of earlier jobs, one for all of them: one question to Slurm answers for all."""
    return engine(Launcher(name), folder)


@dataclass(frozen=True)
class SubmittedJobs:
    """Jobs of a study that were submitted last."""

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
        """(engine, number, state) of a run's job that has not ended, as the engine says."""
        entry = self.entries.get(run.signature)
        if entry is None or entry.get("engine") not in ("slurm", "slurm_local"):
            return None
        known = _known_engine(entry["engine"], self.file.with_name("submitit"))
        state = known.find_job(entry["job"]).state()
        return None if state in FINISHED_JOB_STATES else (entry["engine"], entry["job"], state)

    def words(self, run: FrozenRun, state: str) -> str:
        """Text of ``--status`` for a run: its state, and the state of its job in a queue."""
        queued = None if run.refused or state == "done" else self.find_queued(run)
        if queued is None:
            return state
        name, number, job_state = queued
        return f"{'running' if job_state == 'RUNNING' or state == 'running' else 'queued'} ({name} {number})"


@dataclass
class JobQueue(Executor):
    """Submits runs and waits for them; as ``JobPool`` for processes of this machine.

    Ctrl-C and SIGTERM end the waiting: jobs of a queue go on, and tasks of Ray are stopped after a
    checkpoint."""

    poll_seconds = 0.5
    launcher: Launcher = field(kw_only=True)

    @cached_property
    def engine(self) -> Any:
        return engine(self.launcher, self.snapshot.file.parent / "submitit")

    def start_waiting(self) -> None:
        """All of them: found in the queue, going elsewhere, or submitted now."""
        runs = self.waiting
        if not runs:
            return
        self.waiting = []
        before = SubmittedJobs(self.snapshot)
        jobs: dict[str, Any] = {}
        new: dict[str, ClusterJob] = {}
        for run in runs:
            queued = before.find_queued(run)
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
        write_text(before.file, json.dumps(before.entries | entries, indent=1))
        for run in runs:
            self.add(run, jobs[run.signature])

    def reap(self) -> None:
        """Take out and report those that have ended."""
        for job in list(self.going):
            code = job.process.poll()
            if code is not None and self._has_ended(job):
                self.going.remove(job)
                self.end(job, code)

    def _has_ended(self, one: RunningProcess) -> bool:
        """True if a job that left no result has ended in the record too.

        The cause goes to the terminal and to the log of the run: the job could not write it.  The
        lease of a run on a lost node expires after a minute, and is waited for.
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
        """Leave jobs of a queue, and stop others."""
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
