"""Detached runs: processes of a study's runs that survived the study's process.

Each run of a study holds a lock for its lifetime,
``<output_dir>/studies/<study>/going/<signature>``, acquired before its process starts and inherited
as an open file.  The file contains the ids of the run's and the study's processes, because runs of
a living study must not be stopped by another."""

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


@dataclass(frozen=True)
class DetachedRun:
    """A run of another process, with the interface of a child process."""

    snapshot: Snapshot
    run: FrozenRun

    @property
    def lock(self) -> Path:
        return inside(self.snapshot.file.parent / "going", self.run.signature, "signature")

    def take_lock(self) -> IO[str] | None:
        """Acquire the lock for a process about to start; None if the run is active already."""
        if self.going():
            return None
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        file = try_lock(self.lock)
        if file is not None:
            file.truncate(0)
        return file

    def going(self) -> bool:
        return is_locked(self.lock) or lease.is_leased(self.snapshot.folder(self.run) / lease.NAME)

    def has_ended(self) -> bool:
        """True if the run succeeded or failed and was not stopped."""
        return self.snapshot.state(self.run) in ("done", "failed", "diverged")

    def poll(self) -> int | None:
        """Exit code, or None while the run is active."""
        return None if self.going() else int(self.snapshot.state(self.run) != "done")

    def number(self) -> int | None:
        """Id of the run's process.

        None if this process must not stop it, because a user started it by hand or its study is
        alive.
        """
        try:
            pid, study = self.lock.read_text().split() if is_locked(self.lock) else ("", "")
            return None if alive(int(study)) else int(pid)
        except (OSError, ValueError):  # the study died before it recorded the ids
            return None

    def _signal(self, signum: int) -> None:
        number = self.number()
        if number is not None:
            with suppress(ProcessLookupError):
                os.kill(number, signum)

    def explain_end(self) -> str:
        """Empty, because the record has the cause."""
        return ""

    def stop(self) -> None:
        """Do nothing: the process that submitted a cluster job stops it."""

    def terminate(self) -> None:
        """Let the run finish its step and write a checkpoint."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)


def left_going(snapshot: Snapshot) -> list[FrozenRun]:
    """Active runs of a study, each signature once."""
    runs = {run.signature: run for run in snapshot.runs if not run.refused}
    return [run for run in runs.values() if DetachedRun(snapshot, run).going()]


def runs_to_await(snapshot: Snapshot, asked: Container[str]) -> list[FrozenRun]:
    """Active runs that the launcher of the ``asked`` runs waits for.

    These are the requested runs, by signature, and detached runs.  Others belong to another process
    of this study or to a study that shares them.
    """
    return [
        run
        for run in left_going(snapshot)
        if run.signature in asked or DetachedRun(snapshot, run).number() is not None
    ]
