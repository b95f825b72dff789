"""Runs that a study has left going: the study was killed, its runs, which are processes of their
own, were not.

Each run of a study holds a lock as long as it lives,
``<output_dir>/studies/<study>/going/<signature>``, from before its process has begun: the file is
open in it, and the lock goes with the file.  It holds the numbers of the process and of the
study's, for the runs of a study that lives are not another's to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runner.disk.atomic import alive
from runner.disk.inside import inside
from runner.disk.lock import is_locked, try_lock
from runner.record import lease
from runner.study.snapshot import FrozenRun, Snapshot


def lock_file(snapshot: Snapshot, run: FrozenRun) -> Path:
    """The lock that a run of a study holds while it is going."""
    return inside(snapshot.file.parent / "going", run.signature, "signature")


def take_run_lock(snapshot: Snapshot, run: FrozenRun) -> IO[str] | None:
    """The lock, open and held, for a process that is about to start; None: the run is going."""
    path = lock_file(snapshot, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = try_lock(path)
    if file is not None:
        file.truncate(0)
    return file


@dataclass(frozen=True)
class DetachedRun:
    """A run that goes on without us, to be waited for as one waits for a process of one's own."""

    snapshot: Snapshot
    run: FrozenRun

    @property
    def lock(self) -> Path:
        return lock_file(self.snapshot, self.run)

    def going(self) -> bool:
        return is_locked(self.lock) or lease.is_leased(self.snapshot.folder(self.run) / lease.NAME)

    def has_ended(self) -> bool:
        """True if the run came to an end, good or bad, and was not stopped on its way."""
        return self.snapshot.state(self.run) in ("done", "failed", "diverged")

    def poll(self) -> int | None:
        """None while it goes, then an exit code."""
        return None if self.going() else int(self.snapshot.state(self.run) != "done")

    def number(self) -> int | None:
        """Number of the run's process.

        None if another process or user has to stop it: a user who started it by hand, or a
        study that is still alive.
        """
        try:
            pid, study = self.lock.read_text().split() if is_locked(self.lock) else ("", "")
            return None if alive(int(study)) else int(pid)
        except (OSError, ValueError):  # the study died before it recorded the state
            return None

    def _signal(self, signum: int) -> None:
        number = self.number()
        if number is not None:
            with suppress(ProcessLookupError):
                os.kill(number, signum)

    def explain_end(self) -> str:
        """Nothing: its record has the cause."""
        return ""

    def stop(self) -> None:
        """A cluster's: whoever submitted it stops it."""

    def terminate(self) -> None:
        """Lets it finish its step and write a checkpoint."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)


def left_going(snapshot: Snapshot) -> list[FrozenRun]:
    """The runs of a study that are going now, each signature once."""
    runs = {run.signature: run for run in snapshot.runs if not run.refused}
    return [run for run in runs.values() if DetachedRun(snapshot, run).going()]


def runs_to_await(snapshot: Snapshot, asked: Container[str]) -> list[FrozenRun]:
    """Runs still going that the launcher of the ``asked`` runs waits for.

    These are the runs ``asked`` for, by their signatures, and runs that no process watches
    any more.  Others belong to another process of this study or to a study that shares
    them.
    """
    return [
        run
        for run in left_going(snapshot)
        if run.signature in asked or DetachedRun(snapshot, run).number() is not None
    ]
