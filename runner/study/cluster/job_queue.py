"""Runs of a study as jobs of an engine (submitit, Ray).

They are submitted together, kept in ``jobs.json``, and waited for.

A job that is still in the queue of an earlier command is waited for, and not submitted
again.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from runner.disk.atomic import write_text
from runner.disk.plain_file import parse_json
from runner.study.cluster.cluster_job import ClusterJob, create_cluster_jobs
from runner.study.cluster.launcher import Launcher, engine
from runner.study.cluster.submitit_engine import ENDED
from runner.study.job_pool import GRACE_SECONDS, RunningProcess
from runner.study.left_going import DetachedRun
from runner.study.snapshot import FrozenRun, Snapshot, location
from runner.terminal.printer import out

POLL_INTERVAL_SECONDS = 0.5  # seconds between checks of the jobs
FINISHED_JOB_STATES = ENDED | {"UNKNOWN"}


class PollableJob(Protocol):
    """A job that was submitted, or a run that goes on elsewhere."""

    def poll(self) -> int | None: ...

    def explain_end(self) -> str: ...

    def stop(self) -> None: ...


@dataclass
class SubmittedRun:
    """A run, its jobs, and how those that have ended did."""

    run: FrozenRun
    jobs: list[tuple[str, PollableJob]]
    started: float
    log: Path
    code: int = 0

    @property
    def process(self) -> Any:
        return self.jobs[0][1]


def _file(snapshot: Snapshot) -> Path:
    return location(snapshot.name, snapshot.output_dir).parent / "jobs.json"


def submitted_jobs(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Engine and number of every job that was submitted last, by signature (and replicate)."""
    with suppress(OSError, ValueError):
        content = parse_json(_file(snapshot).read_text())
        return content if isinstance(content, dict) else {}
    return {}


def _folder(snapshot: Snapshot) -> Path:
    return location(snapshot.name, snapshot.output_dir).parent / "submitit"


@cache
def _known_engine(name: str, folder: Path) -> Any:
    """Engine of earlier jobs, one for all of them: one question to Slurm answers for all."""
    return engine(Launcher(name), folder)


def find_queued_jobs(
    snapshot: Snapshot, run: FrozenRun, jobs: dict[str, dict[str, str]]
) -> list[tuple[str, str, str]]:
    """(engine, number, state) of a run's jobs that have not ended, as the engine says."""
    queued_jobs = []
    for key, entry in jobs.items():
        if key.partition("-")[0] == run.signature and entry.get("engine") in (
            "slurm",
            "slurm_local",
        ):
            ticket = _known_engine(entry["engine"], _folder(snapshot)).find_job(entry["job"])
            if (state := ticket.state()) not in FINISHED_JOB_STATES:
                queued_jobs.append((entry["engine"], entry["job"], state))
    return queued_jobs


def words(snapshot: Snapshot, run: FrozenRun, state: str, jobs: dict[str, dict[str, str]]) -> str:
    """Text of ``--status`` for a run: its state, and the state of its jobs in a queue."""
    waiting = [] if run.refused or state == "done" else find_queued_jobs(snapshot, run, jobs)
    if not waiting:
        return state
    if len(waiting) > 1:
        n_running = sum(of == "RUNNING" for _, _, of in waiting)
        return (
            f"{n_running} jobs running, {len(waiting) - n_running} queued ({waiting[0][0]} "
            f"{waiting[0][1].partition('_')[0]})"
        )
    name, number, job_state = waiting[0]
    return f"{'running' if job_state == 'RUNNING' or state == 'running' else 'queued'} ({name} {number})"


class JobQueue:
    """Submits runs and waits for them; as ``JobPool`` for processes of this machine.

    Ctrl-C and SIGTERM end the waiting: jobs of a queue go on, and tasks of Ray are stopped after a
    checkpoint."""

    def __init__(
        self,
        snapshot: Snapshot,
        launcher: Launcher,
        on_end: Callable[[FrozenRun, int, float, Path, bool], None],
        on_poll: Callable[[list[RunningProcess]], None] = lambda going: None,
    ):
        self.snapshot = snapshot
        self.launcher = launcher
        self.on_end = on_end
        self.on_poll = on_poll
        self.engine = engine(launcher, _folder(snapshot))
        self.stopped_by: int | None = None
        self.left = 0  # jobs that continue without this process

    def _note(self, signum: int, _frame: Any) -> None:
        self.stopped_by = self.stopped_by or signum

    def _find_existing_jobs(
        self, run: FrozenRun, before: dict[str, Any]
    ) -> list[tuple[str, PollableJob]]:
        """Jobs of a run that are in the queue, or its process that goes on elsewhere."""
        queued = [
            number
            for name, number, _ in find_queued_jobs(self.snapshot, run, before)
            if name == self.engine.name
        ]
        if queued:
            return [(number, self.engine.find_job(number)) for number in queued]
        leftover = DetachedRun(self.snapshot, run)
        return [("", leftover)] if leftover.going() else []

    def _submit(self, runs: list[FrozenRun]) -> list[SubmittedRun]:
        """All of them: found in the queue, going elsewhere, or submitted now."""
        before = submitted_jobs(self.snapshot)
        all_jobs: list[tuple[FrozenRun, list[ClusterJob]]] = []
        existing_jobs: dict[str, list[tuple[str, PollableJob]]] = {}
        for run in runs:
            existing_jobs[run.signature] = self._find_existing_jobs(run, before)
            all_jobs.append(
                (run, create_cluster_jobs(self.snapshot, run, self.launcher.by_replicate))
            )
        new = [job for run, jobs in all_jobs if not existing_jobs[run.signature] for job in jobs]
        tickets = (
            dict(zip((job.key for job in new), self.engine.submit(new), strict=True)) if new else {}
        )
        entries = {
            key: {"engine": self.engine.name, "job": ticket.id} for key, ticket in tickets.items()
        }
        write_text(_file(self.snapshot), json.dumps(before | entries, indent=1))
        now = time.monotonic()
        return [
            SubmittedRun(
                run,
                existing_jobs[run.signature] or [(job.key, tickets[job.key]) for job in jobs],
                now,
                Path(jobs[-1].log),
            )
            for run, jobs in all_jobs
        ]

    def go(self, runs: list[FrozenRun]) -> None:
        """Runs them all, unless a signal stops the waiting."""
        before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        jobs: list[SubmittedRun] = []
        try:
            jobs = self._submit(runs)
            while jobs and self.stopped_by is None:
                self._look(jobs)
                if not jobs:
                    break
                self.on_poll([RunningProcess(g.run, g.process, g.started, g.log) for g in jobs])
                time.sleep(POLL_INTERVAL_SECONDS)
            self._stop(jobs)
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)

    def _look(self, going: list[SubmittedRun]) -> None:
        for one in list(going):
            pending = []
            for key, job in one.jobs:
                code = job.poll()
                if code is not None and not self._has_ended(one, key, job):
                    code = None
                if code is None:
                    pending.append((key, job))
                one.code = one.code or code or 0
            one.jobs = pending or one.jobs[:1]
            if not pending:
                going.remove(one)
                self.on_end(
                    one.run,
                    one.code,
                    time.monotonic() - one.started,
                    one.log,
                    self.stopped_by is not None,
                )

    def _has_ended(self, one: SubmittedRun, key: str, job: PollableJob) -> bool:
        """True if a job that left no result has ended in the record too.

        The cause goes to the terminal and to the log of the run: the job could not write it.  The
        lease of a run on a lost node expires after a minute, and is waited for.
        """
        cause = job.explain_end()
        if not cause:
            return True
        if DetachedRun(self.snapshot, one.run).going():
            return False
        if self.snapshot.state(one.run) != "done":
            out.print(f"note     {one.run.name}: {cause}", style="yellow")
        log = one.log.with_name(f"{key}.log")
        one.log = log if log.is_file() else one.log
        one.log.parent.mkdir(parents=True, exist_ok=True)
        with one.log.open("a") as file:
            file.write(f"{cause}\n")
        return True

    def _stop(self, going: list[SubmittedRun]) -> None:
        if self.engine.outlives:
            self.left = len(going)
            return
        for one in going:
            for _, job in one.jobs:
                job.stop()
        deadline = time.monotonic() + GRACE_SECONDS
        while (
            any(DetachedRun(self.snapshot, one.run).going() for one in going)
            and time.monotonic() < deadline
        ):
            time.sleep(POLL_INTERVAL_SECONDS)
        for one in going:
            self.on_end(
                one.run,
                128 + int(self.stopped_by or 0),
                time.monotonic() - one.started,
                one.log,
                True,
            )
