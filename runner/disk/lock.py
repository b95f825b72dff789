"""Locks that a process of this machine holds until it ends, however it ends.

They serve a study's processes and the pusher's requests.

The lock of a run, which other machines must see too, is a lease: ``lease.py``.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO

from runner.disk.plain_file import open_plain

TRIES = 6
RETRY_SECONDS = 0.05  # and the seconds between them


def is_locked(path: Path) -> bool:
    """True if some process holds a lock."""
    try:
        with open_plain(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def try_lock(path: Path) -> IO[str] | None:
    """The lock, open and held as long as the file is open; None: another process holds it."""
    file = path.open("a+", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def lock_with_retries(path: Path) -> IO[str] | None:
    """``try_lock``, tried again for a moment: whoever holds the lock may only be looking whether it
    is held."""
    for tries_left in reversed(range(TRIES)):
        if (file := try_lock(path)) is not None:
            return file
        if tries_left:
            time.sleep(RETRY_SECONDS)
    return None
