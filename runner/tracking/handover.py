"""Upload requests of a run to MLflow, which do not block the run.

One process for each output folder, the pusher, uploads all of its runs.

Importing MLflow, opening its database and uploading take 2 to 6 s of CPU per process, while a smoke
run takes 4 s.  The pusher imports MLflow during training, once for all runs of a study, and a
server that does not respond never blocks a run.  A run waits for the pusher only at its end, for at
most ``TIMEOUT_SECONDS``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from runner.catalogue.settings import Settings
from runner.disk.lock import is_locked
from runner.record.facts import read
from runner.record.folders import name_run
from runner.tracking.marks import Marks, read_marks
from runner.tracking.pages import find_server, page_of_record
from runner.tracking.request import queue, request_push
from runner.tracking.store import fault, is_remote, store_name, tracking_uri

TIMEOUT_SECONDS = 0.7  # waiting time for the last push, so that a run ends within a second
POLL_SECONDS = 0.02  # interval between checks of the push
LOCK = ".pusher"
PUSHER_LOG_NAME = ".log"  # log file of the pusher in the folder of requests


class Handover:
    """Interface of a run to the pusher; ``trouble`` is the reason why the run is not in MLflow."""

    def __init__(self, folder: Path, output_dir: Path):
        self.folder = folder
        self.output_dir = output_dir
        self._mine: str | None = None  # problem of this process
        self._before: int | None = None  # time of mlflow.json before this run began

    def begin(self) -> None:
        """Request uploads from now on and start a pusher if necessary.

        A repeated call restores both.
        """
        if self._before is None:
            self._before = self._changed_at()
        try:
            self._mine = fault(tracking_uri(self.output_dir), busy_seconds=0.0)
            # another process, such as the pusher, is writing
            if self._mine is not None and "locked" in self._mine:
                self._mine = None
            request_push(self.folder, self.output_dir)
            start_pusher(self.output_dir)
        except OSError as error:  # the record reports disk errors
            self._mine = f"{self.output_dir}: {error.strerror or error}"

    def end(self) -> None:
        """Wait briefly for the upload of the run's end; the pusher completes the rest.

        The request is repeated, because an earlier one may have been removed as completed.
        """
        self.begin()
        until = time.monotonic() + TIMEOUT_SECONDS
        while not self.complete and self.trouble is None and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    @property
    def _marks(self) -> Marks:
        return read_marks(self.folder, store_name(tracking_uri(self.output_dir), self.output_dir))

    @property
    def trouble(self) -> str | None:
        """Problem during this run, or None.

        A problem of an earlier push is ignored, because it may have been fixed.
        """
        return self._mine or (self._marks.trouble if self._changed_at() != self._before else None)

    def _changed_at(self) -> int:
        with suppress(OSError):
            return (self.folder / "mlflow.json").stat().st_mtime_ns
        return 0

    @property
    def page(self) -> str | None:
        """URL of the run's page; None without a server or before the upload."""
        server = find_server(self.output_dir)
        return None if server is None else page_of_record(self.folder, self.output_dir, server)

    @property
    def ui_command(self) -> str:
        """Command that opens the run's page."""
        folder = "" if self.output_dir == Path("outputs") else f" --output-dir {self.output_dir}"
        return f"runner ui {name_run(self.folder)}{folder}"

    @property
    def complete(self) -> bool:
        """True if this end of the run is in MLflow."""
        facts = read(self.folder) or {}
        return self._marks.ended == f"{facts.get('state')} {facts.get('ended')}"


def create_handover(settings: Settings, folder: Path) -> Handover | None:
    """Create the interface to MLflow; None if tracking is off, or if the store is a server and
    ``offline`` is set.
    """
    output_dir = Path(settings.output_dir)
    if not settings.tracking or (settings.offline and is_remote(tracking_uri(output_dir))):
        return None
    return Handover(folder, output_dir)


def ensure_pushed(settings: Settings, folder: Path) -> Handover | None:
    """``create_handover`` for a finished run, with another request if MLflow lacks a part of it."""
    handover = create_handover(settings, folder)
    if handover and not handover.complete:
        handover.end()
    return handover


class DetachedProcess(subprocess.Popen[bytes]):
    """A process that may outlive this one, without the warning of Popen."""

    def __del__(self, *_: object) -> None:
        """Do not warn."""


def start_pusher(output_dir: Path) -> None:
    """Start a pusher, unless one is active; it outlives the run by a few seconds at most.

    Raises:
        OSError: the process cannot be started.
    """
    mine = _pusher_by_folder.get(output_dir)
    if mine is not None and mine.poll() is None:  # active or starting
        return
    if is_locked(queue(output_dir) / LOCK):
        return
    command = [sys.executable, "-P", "-m", "runner.tracking.pusher", str(output_dir.resolve())]
    with (queue(output_dir) / PUSHER_LOG_NAME).open("ab") as log:
        # a separate session, because Ctrl-C is meant for the run; -P prevents imports from the
        # current folder
        _pusher_by_folder[output_dir] = DetachedProcess(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    """Environment of this process with the location of its code, needed for a checkout that is not
    installed."""
    root = Path(__file__).parent.parent.parent
    if root.is_relative_to(sys.prefix):
        return dict(os.environ)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
    }


_pusher_by_folder: dict[Path, DetachedProcess] = {}  # by output folder; polled to avoid zombies
