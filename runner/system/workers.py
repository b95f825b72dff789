"""Workers of sweeps that go on though the sweep was killed: found by what the sweep has put in
their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.record.lease_holder import process_start
from runner.sweep.outcomes import SWEEP_PROCESS_VARIABLE, SWEEP_VARIABLE

PROC_FOLDER = Path("/proc")
WORKER, TRACKER = (
    b"loky",
    b"resource_tracker",
)  # words in the command line of joblib's workers; a tracker ends with them


@dataclass(frozen=True)
class OrphanedWorker:
    """A process of a sweep that outlived the sweep's own process."""

    process: int
    start: str  # its start time: process numbers are reused
    sweep: Path

    def stop(self) -> bool:
        """Asks it to finish its step, write a checkpoint and end its job, or to end where it has
        none; False: it is no more."""
        if process_start(self.process) != self.start:
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.process, signal.SIGTERM)
            return True
        return False


def orphaned_workers(output_dir: Path) -> Iterator[OrphanedWorker]:
    """Orphaned workers of sweeps under an output folder, on this machine."""
    for folder in sorted(PROC_FOLDER.glob("[0-9]*")):
        environment = _environment(folder)
        holder = environment.get(SWEEP_PROCESS_VARIABLE, "")
        sweep = Path(environment.get(SWEEP_VARIABLE, ""))
        process, _, start = holder.partition(":")
        if not process.isdecimal() or process_start(int(process)) == start:
            continue
        command = _bytes(folder / "cmdline")
        if (
            WORKER in command
            and TRACKER not in command
            and sweep.is_relative_to(output_dir.resolve())
        ):
            number = int(folder.name)
            yield OrphanedWorker(number, process_start(number), sweep)


def _bytes(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def _environment(folder: Path) -> dict[str, str]:
    """Environment of a process; empty if it is another user's."""
    words = (
        word.decode(errors="replace").partition("=")
        for word in _bytes(folder / "environ").split(b"\0")
    )
    return {name: value for name, _, value in words}
