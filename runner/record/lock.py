"""Locks that a process holds as long as it lives, whatever ends it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

from runner.mistakes import ConfigError

TRIES, PAUSE = 6, 0.05  # somebody may only be looking, for a moment, whether a lock is held


def held(path: Path) -> bool:
    """Whether some process holds a lock."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def taken(folder: Path, signature: str) -> IO[str]:
    """The lock of a run's folder, open and held, with the number of this process in it.

    Raises:
        ConfigError: another process holds it.
    """
    lock = (folder / ".lock").open("a+", errors="replace")
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if left:
                time.sleep(PAUSE)
                continue
            lock.seek(0)
            process = lock.read().strip() or "unknown"
            lock.close()
            raise ConfigError(
                f"run {signature} is already going (process {process}); wait for it, or change seed="
            ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
