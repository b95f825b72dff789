"""Execution of a study's runs: start, wait until they end, stop after a signal."""

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
from runner.terminal.handlers import handle_signals

GRACE_SECONDS = 120.0  # time limit for stopped runs to finish a step and write a checkpoint


@dataclass
class RunningProcess:
    """A process, or a job of a cluster engine, with its run."""

    run: FrozenRun
    process: Any  # Popen | DetachedRun | QueuedJob | RayTask
    started: float
    log: Path
    gpu: dict[str, str] = field(default_factory=dict)  # environment variable that assigns the GPU


def log_file(snapshot: Snapshot, run: FrozenRun) -> Path:
    """Log file of a run's process."""
    return inside(snapshot.file.parent / "logs", f"{run.signature}.log", "signature")


OnEnd = Callable[[RunningProcess, int, bool], None]
OnPoll = Callable[[list[RunningProcess]], None]


@dataclass
class Executor(ABC):
    """Executor of runs, which reports each run that ends.

    ``stopped_by`` is the signal that ended the executor, if any.
    """

    poll_seconds: ClassVar[float]  # interval between checks
    snapshot: Snapshot
    on_end: OnEnd  # run, exit code, and True if a signal stopped them all
    on_poll: OnPoll = lambda going: None  # called between checks
    waiting: list[FrozenRun] = field(default_factory=list)
    going: list[RunningProcess] = field(default_factory=list)
    stopped_by: int | None = None
    left: int = 0  # number of jobs that continue without this process

    @abstractmethod
    def start_waiting(self) -> None:
        """Start waiting runs."""

    @abstractmethod
    def reap(self) -> None:
        """Remove and report runs that have ended."""

    @abstractmethod
    def stop(self) -> None:
        """Stop active runs, except those that continue without this process."""

    def add(self, run: FrozenRun, process: Any, gpu: dict[str, str] | None = None) -> None:
        """Add an active run."""
        log = log_file(self.snapshot, run)
        self.going.append(RunningProcess(run, process, time.monotonic(), log, gpu or {}))

    def end(self, job: RunningProcess, code: int) -> None:
        """Report a run that has ended."""
        self.on_end(job, code, self.stopped_by is not None)

    def note_signal(self, signum: int, _frame: Any) -> None:
        """Handle the signals that stop the executor."""
        self.stopped_by = self.stopped_by or signum

    def go(self, runs: list[FrozenRun]) -> None:
        """Execute all runs in order, until a signal stops the executor."""
        self.waiting = list(runs)
        with handle_signals(self.note_signal, signal.SIGINT, signal.SIGTERM):
            try:
                while (self.waiting or self.going) and self.stopped_by is None:
                    self.start_waiting()
                    self.on_poll(self.going)
                    time.sleep(self.poll_seconds)
                    self.reap()
            finally:
                self.stop()
