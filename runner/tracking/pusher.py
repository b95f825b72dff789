"""``python -m runner.tracking.pusher <output_dir>``: upload all runs with a request, then exit.

It is started by the first run that finds no active pusher.  It reads only the folders of runs: new
content is uploaded every ``EVERY`` seconds, and immediately if the state of a run changes.  If a
store is not reachable, it retries every five minutes while runs are active and once after the last
one has ended; the rest is left to ``runner sync``.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.lock import lock_with_retries
from runner.record.lease import NAME as LEASE
from runner.record.lease import is_leased
from runner.terminal import streams
from runner.tracking.handover import LOCK
from runner.tracking.mirror import Mirror, open_client
from runner.tracking.request import folder_of, queue, requests
from runner.tracking.store import one_at_a_time, tracking_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

EVERY = 30.0  # seconds between pushes of an active run
POLL_SECONDS = 0.1  # seconds between checks of the folders
IDLE_TIMEOUT_SECONDS = 5.0  # waiting time for the next run, which saves another import of MLflow
RETRY_SECONDS = 300.0  # seconds between retries of a store that does not respond
PUSHER_NICENESS = 10  # gives priority to runs


@dataclass
class WatchedRun:
    """Last observed state of a run with a request."""

    facts: int = 0  # time of run.json in ns
    lines: int = 0  # size of metrics.jsonl
    pushed: float = -EVERY  # when

    def due(self, folder: Path, now: float) -> bool:
        """True if new content is due for upload."""
        facts, lines = _folder_state(folder)
        return facts != self.facts or (lines != self.lines and now - self.pushed >= EVERY)


def _folder_state(folder: Path) -> tuple[int, int]:
    facts = 0
    lines = 0
    with suppress(OSError):
        facts = (folder / "run.json").stat().st_mtime_ns
        lines = (folder / "metrics.jsonl").stat().st_size
    return facts, lines


@dataclass
class Pusher:
    """Uploader of the runs of an output folder."""

    output_dir: Path
    clock: Callable[[], float] = time.monotonic
    client: MlflowClient | None = None
    watched: dict[Path, WatchedRun] = field(default_factory=dict)
    silent_until: float = -math.inf  # time of the next attempt if the store did not respond

    def look(self) -> int:
        """Push due content; return the number of remaining requests."""
        asking = {entry: folder_of(entry, self.output_dir) for entry in requests(self.output_dir)}
        gone = {
            request
            for request, folder in asking.items()
            if folder is None or not is_leased(folder / LEASE)
        }
        # no active run: try each remaining one once, then stop
        last = len(gone) == len(asking)
        for request, folder in asking.items():
            answered = folder is None or self._push_if_due(folder, request in gone, last)
            if request in gone and (answered or last):
                request.unlink(missing_ok=True)
            if not answered and last:  # the others would fail after the same timeout
                for pending in asking:
                    pending.unlink(missing_ok=True)
                break
        self.watched = {
            folder: watched_run for folder, watched_run in self.watched.items() if folder.exists()
        }
        return len(requests(self.output_dir))

    def _push_if_due(self, folder: Path, is_gone: bool, last: bool) -> bool:
        """Push a run; return False if the store did not respond or is not queried now.

        ``is_gone`` means that the run is not active, ``last`` that this is the last attempt.
        """
        entry = self.watched.setdefault(folder, WatchedRun())
        if not (is_gone or entry.due(folder, self.clock())):
            return True
        is_silent = self.clock() < self.silent_until and not last
        return False if is_silent else self._push(folder, entry)

    def _push(self, folder: Path, seen: WatchedRun) -> bool:
        """Push a run; return True if the store responded."""
        seen.facts, seen.lines = _folder_state(folder)
        mirror = Mirror(folder, self.output_dir, self.client)
        mirror.push()
        seen.pushed = self.clock()
        self.client = mirror.client
        if mirror.unreachable:
            seen.facts = 0  # reset, so that the next attempt pushes it
            self.silent_until = self.clock() + RETRY_SECONDS
            self.client = None
        return not mirror.unreachable


def main(argv: list[str]) -> int:
    """Push until no requests remain."""
    output_dir = Path(argv[0])
    with suppress(OSError):
        os.nice(PUSHER_NICENESS)
    pusher = Pusher(output_dir)
    # check again after releasing the lock: a late run observed it held and started no pusher
    while requests(output_dir):
        # a run that checks for a pusher holds the lock briefly
        lock = lock_with_retries(queue(output_dir) / LOCK)
        if lock is None:
            return 0
        with lock:
            # early; errors are reported by the first push
            with suppress(Exception), one_at_a_time(tracking_uri(output_dir)):
                pusher.client = open_client(output_dir)
            idle = time.monotonic()
            while time.monotonic() - idle < IDLE_TIMEOUT_SECONDS and queue(output_dir).is_dir():
                if pusher.look():
                    idle = time.monotonic()
                time.sleep(POLL_SECONDS)
    return 0


if __name__ == "__main__":
    streams.install()
    with suppress(FileNotFoundError):  # the output folder was removed
        raise SystemExit(main(sys.argv[1:]))
