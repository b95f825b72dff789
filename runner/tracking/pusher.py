"""``python -m runner.tracking.pusher <output_dir>``: pushes every run that requests it.

It ends when no run requests it any more.

Started by the first run that finds no pusher at work.  It reads the folders of the
runs, not the runs: new content is pushed every ``EVERY`` seconds, and immediately if
the state of a run changed.  If a store cannot be reached, it is tried again every five
minutes while runs go on, once more when the last has ended, and then left to
``runner sync``.
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

EVERY = 30.0  # seconds between pushes of a running run
POLL_SECONDS = 0.1  # seconds between checks of the folders
IDLE_TIMEOUT_SECONDS = (
    5.0  # seconds that it waits for a next run, which then need not import MLflow again
)
RETRY_SECONDS = 300.0  # seconds between tries of a store that does not answer
PUSHER_NICENESS = 10  # runs come first


@dataclass
class WatchedRun:
    """Last seen state of a run that requests to be pushed."""

    facts: int = 0  # time of run.json, ns
    lines: int = 0  # size of metrics.jsonl
    pushed: float = -EVERY  # when

    def due(self, folder: Path, now: float) -> bool:
        """True if there is new content, and its time has come."""
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
    """The runs of one output folder on their way to MLflow."""

    output_dir: Path
    clock: Callable[[], float] = time.monotonic
    client: MlflowClient | None = None
    watched: dict[Path, WatchedRun] = field(default_factory=dict)
    silent_until: float = -math.inf  # of a store that did not answer: when it is tried again

    def open_store(self) -> None:
        """Imports MLflow and opens its database while the runs begin; what is wrong with it shows
        when something is pushed."""
        with suppress(Exception), one_at_a_time(tracking_uri(self.output_dir)):
            self.client = open_client(self.output_dir)

    def look(self) -> int:
        """Pushes what is due; how many runs still ask for it."""
        asking = {one: folder_of(one, self.output_dir) for one in requests(self.output_dir)}
        gone = {
            request
            for request, folder in asking.items()
            if folder is None or not is_leased(folder / LEASE)
        }
        # no run goes on: try each remaining one once, then stop
        last = len(gone) == len(asking)
        for request, folder in asking.items():
            answered = folder is None or self._push_if_due(folder, request in gone, last)
            if request in gone and (answered or last):
                request.unlink(missing_ok=True)
            if not answered and last:  # the others would wait as long, with the same result
                for pending in asking:
                    pending.unlink(missing_ok=True)
                break
        self.watched = {folder: seen for folder, seen in self.watched.items() if folder.exists()}
        return len(requests(self.output_dir))

    def _push_if_due(self, folder: Path, is_gone: bool, last: bool) -> bool:
        """Pushes a run; False if the store did not answer, or is not asked now.

        ``is_gone``: the run does not go on; ``last``: it is the last try.
        """
        entry = self.watched.setdefault(folder, WatchedRun())
        if not (is_gone or entry.due(folder, self.clock())):
            return True
        is_silent = self.clock() < self.silent_until and not last
        return False if is_silent else self._push(folder, entry)

    def _push(self, folder: Path, seen: WatchedRun) -> bool:
        """True if the store answered."""
        seen.facts, seen.lines = _folder_state(folder)
        mirror = Mirror(folder, self.output_dir, self.client)
        mirror.push()
        seen.pushed = self.clock()
        self.client = mirror.client
        if mirror.unreachable:
            seen.facts = 0  # forget it: the next try pushes it
            self.silent_until = self.clock() + RETRY_SECONDS
            self.client = None
        return not mirror.unreachable


def main(argv: list[str]) -> int:
    """Pushes until nobody asks for it."""
    output_dir = Path(argv[0])
    with suppress(OSError):
        os.nice(PUSHER_NICENESS)
    pusher = Pusher(output_dir)
    # check again without the lock: a run that came last saw it held, and started none
    while requests(output_dir):
        # a run that checks for a pusher holds it for a moment
        lock = lock_with_retries(queue(output_dir) / LOCK)
        if lock is None:
            return 0
        with lock:
            pusher.open_store()
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
