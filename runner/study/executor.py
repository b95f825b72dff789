"""Runs of a study under way, wherever they are computed: watched until they end, or a signal stops
them."""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from runner.disk.inside import inside
from runner.study.snapshot import FrozenRun, Snapshot

GRACE_SECONDS = 120.0  # seconds that stopped runs get to finish their step and write a checkpoint


@dataclass
class RunningProcess:
    """A process, or a job of a cluster's engine, and what it runs."""

    run: FrozenRun
    process: Any  # Popen | DetachedRun | QueuedJob | RayTask
    started: float
    log: Path
    gpu: dict[str, str] = field(default_factory=dict)  # the variable that assigns it its GPU


def log_file(snapshot: Snapshot, run: FrozenRun) -> Path:
    """File with the output of a run's process."""
    return inside(snapshot.file.parent / "logs", f"{run.signature}.log", "signature")


OnEnd = Callable[[FrozenRun, int, float, Path, bool], None]
OnPoll = Callable[[list[RunningProcess]], None]


@dataclass
class Executor(ABC):
    """Starts runs, and reports each that ends.

    ``stopped_by`` is the signal that ended it, if one did.
    """

    poll_seconds: ClassVar[float]  # between checks
    snapshot: Snapshot
    on_end: OnEnd  # run, exit code, seconds, log, and True if a signal stopped them all
    on_poll: OnPoll = lambda going: None  # called between checks
    waiting: list[FrozenRun] = field(default_factory=list)
    going: list[RunningProcess] = field(default_factory=list)
    stopped_by: int | None = None
    left: int = 0  # jobs that continue without this process

    @abstractmethod
    def start_waiting(self) -> None:
        """Start runs that wait."""

    @abstractmethod
    def reap(self) -> None:
        """Take out and report those that have ended."""

    @abstractmethod
    def stop(self) -> None:
        """Stop those that have not ended, as far as they are stopped with this process."""

    def add(self, run: FrozenRun, process: Any, gpu: dict[str, str] | None = None) -> None:
        """A run is under way."""
        log = log_file(self.snapshot, run)
        self.going.append(RunningProcess(run, process, time.monotonic(), log, gpu or {}))

    def end(self, job: RunningProcess, code: int) -> None:
        """Report a run that has ended."""
        seconds = time.monotonic() - job.started
        self.on_end(job.run, code, seconds, job.log, self.stopped_by is not None)

    def note_signal(self, signum: int, _frame: Any) -> None:
        """Handler of the signals that stop it."""
        self.stopped_by = self.stopped_by or signum

    def go(self, runs: list[FrozenRun]) -> None:
        """Runs them all, in order, unless a signal stops it."""
        stopping = (signal.SIGINT, signal.SIGTERM)
        before = {s: signal.signal(s, self.note_signal) for s in stopping}
        self.waiting = list(runs)
        try:
            while (self.waiting or self.going) and self.stopped_by is None:
                self.start_waiting()
                self.on_poll(self.going)
                time.sleep(self.poll_seconds)
                self.reap()
        finally:
            self.stop()
            for s, handler in before.items():
                signal.signal(s, handler)
