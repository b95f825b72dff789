"""Who asks to be pushed: a small file for each run in ``<output_dir>/.tracking``, held by the run's
process while it lives.

A lock on an open file goes with its process, however that ends: the pusher knows without asking
whether a run goes on."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from runner.disk.lock import is_locked, try_lock
from runner.record.record import runs


class Request:
    """One run's wish to be pushed, as its own process holds it."""

    def __init__(self, folder: Path, output_dir: Path):
        self.path = queue(output_dir) / f"{folder.parent.name}.{folder.name}"
        self._where = f"{folder.parent.name}/{folder.name}"
        self._file: IO[str] | None = None

    def hold(self) -> None:
        """Writes it down, and holds it; anew where it was cleared away.

        Raises:
            OSError: the output folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._file is None or not _is_same_file(self._file, self.path):
            self.release()
            self._file = self.path.open("a+")
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.truncate(0)
        self._file.write(self._where)
        self._file.flush()

    def release(self) -> None:
        """The process has nothing more to say of this run."""
        if self._file is not None:
            self._file.close()
            self._file = None


def request_all(output_dir: Path) -> None:
    """Requests a push of every record, as of runs that have ended."""
    for folder in runs(output_dir):
        request = Request(folder, output_dir)
        if not request.path.exists():  # otherwise its own process may hold it
            request.hold()
            request.release()


def queue(output_dir: Path) -> Path:
    """The folder of all requests."""
    return output_dir / ".tracking"


def requests(output_dir: Path) -> list[Path]:
    """Requests that are waiting."""
    with suppress(OSError):
        return sorted(path for path in queue(output_dir).iterdir() if not path.name.startswith("."))
    return []


def folder_of(request: Path, output_dir: Path) -> Path | None:
    """The run folder that a request names; None: not yet written, or no folder of a run."""
    with suppress(OSError):
        folder = output_dir / request.read_text()
        if (
            folder.resolve().parent.parent == output_dir.resolve()
            and (folder / "run.json").exists()
        ):
            return folder
    return None


def is_released(request: Path) -> bool:
    """True if the process that made a request has ended, or is done with it."""
    return not is_locked(request)


def clear(request: Path) -> None:
    """Takes a request away, unless a process holds it again."""
    with suppress(OSError):
        if (lock := try_lock(request)) is not None:
            with lock:
                request.unlink()


def _is_same_file(file: IO[str], path: Path) -> bool:
    try:
        file_stat, path_stat = os.fstat(file.fileno()), path.stat()
    except OSError:
        return False
    return (file_stat.st_ino, file_stat.st_dev) == (path_stat.st_ino, path_stat.st_dev)
