"""File locks between processes of one machine, released when a process ends in any way.

They are used by the processes of studies and by the MLflow pusher.  Runs are locked by leases
(``lease.py``), which other machines observe too.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO

from runner.disk.plain_file import open_plain

TRIES = 6
RETRY_SECONDS = 0.05  # seconds between attempts


def is_locked(path: Path) -> bool:
    """True if a process holds the lock."""
    try:
        with open_plain(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def try_lock(path: Path) -> IO[str] | None:
    """Acquire the lock, held until the returned file is closed; None if another process holds it."""
    file = path.open("a+", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def lock_with_retries(path: Path) -> IO[str] | None:
    """``try_lock`` with retries, because ``is_locked`` of another process holds the lock briefly."""
    for tries_left in reversed(range(TRIES)):
        if (file := try_lock(path)) is not None:
            return file
        if tries_left:
            time.sleep(RETRY_SECONDS)
    return None
