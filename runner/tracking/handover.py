"""A run's part in the upload to MLflow: it requests a push and goes on.

One process for each output folder pushes for all of them.

Importing MLflow, opening its database and pushing cost 2 to 6 s of CPU, in every
process that does it; a smoke run takes 4.  The pusher therefore imports while the runs
train, once for all runs of a study, and no call to a server that hangs ever blocks a
run.  A run waits for it only at its end, and no longer than ``PATIENCE``.
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
from runner.tracking.marks import Marks, read_marks
from runner.tracking.pages import find_server, page_of_record
from runner.tracking.request import queue, request_push
from runner.tracking.store import fault, is_remote, store_name, tracking_uri

PATIENCE = 0.7  # seconds that the end of a run waits for the last push: with the rest, less than 1
POLL_SECONDS = 0.02  # seconds between checks of its progress
LOCK = ".pusher"
PUSHER_LOG_NAME = ".log"  # of the pusher, among the requests


class Handover:
    """One run's dealings with the pusher; ``trouble`` says what keeps it from MLflow."""

    def __init__(self, folder: Path, output_dir: Path):
        self.folder = folder
        self.output_dir = output_dir
        self._mine: str | None = None  # trouble of this process
        self._before: int | None = None  # when mlflow.json was written last before this run began

    def begin(self) -> None:
        """Request a push, from now on; start a pusher if there is no pusher yet.

        Called again, it makes sure of both.
        """
        if self._before is None:
            self._before = self._changed_at()
        try:
            self._mine = fault(tracking_uri(self.output_dir), busy_seconds=0.0)
            # another process writes, as the pusher does
            if self._mine is not None and "locked" in self._mine:
                self._mine = None
            request_push(self.folder, self.output_dir)
            start_pusher(self.output_dir)
        except OSError as error:  # the record will report the disk's error
            self._mine = f"{self.output_dir}: {error.strerror or error}"

    def end(self) -> None:
        """Waits a little for the run's end to be in, and goes; the pusher finishes what is left.

        The request is made again: an earlier one may have been answered as of a run that is over.
        """
        self.begin()
        until = time.monotonic() + PATIENCE
        while not self.complete and self.trouble is None and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    @property
    def _marks(self) -> Marks:
        return read_marks(self.folder, store_name(tracking_uri(self.output_dir), self.output_dir))

    @property
    def trouble(self) -> str | None:
        """Problem during this run; None if there was no problem.

        A problem of an earlier push may have been fixed, so it does not count.
        """
        return self._mine or (self._marks.trouble if self._changed_at() != self._before else None)

    def _changed_at(self) -> int:
        with suppress(OSError):
            return (self.folder / "mlflow.json").stat().st_mtime_ns
        return 0

    @property
    def run_id(self) -> str | None:
        """MLflow's name of the run, once it has one."""
        return self._marks.run_id

    @property
    def page(self) -> str | None:
        """Address of the run's page on a server; None: there is none, or it has not got the run."""
        server = find_server(self.output_dir)
        return None if server is None else page_of_record(self.folder, self.output_dir, server)

    @property
    def ui_command(self) -> str:
        """The command that opens the run's page."""
        folder = "" if self.output_dir == Path("outputs") else f" --output-dir {self.output_dir}"
        return f"runner ui {self.folder.parent.name}/{self.folder.name}{folder}"

    @property
    def complete(self) -> bool:
        """True if MLflow has this end of the run."""
        facts = read(self.folder) or {}
        return self._marks.ended == f"{facts.get('state')} {facts.get('ended')}"


def create_handover(settings: Settings, folder: Path) -> Handover | None:
    """A run's dealings with MLflow, where it has any: offline not with a server."""
    output_dir = Path(settings.output_dir)
    if not settings.tracking or (settings.offline and is_remote(tracking_uri(output_dir))):
        return None
    return Handover(folder, output_dir)


def ensure_pushed(settings: Settings, folder: Path) -> Handover | None:
    """``create_handover`` of a run that is done, which asks once more where MLflow has not got all
    of it."""
    handover = create_handover(settings, folder)
    if handover and not handover.complete:
        handover.end()
    return handover


class DetachedProcess(subprocess.Popen[bytes]):
    """A process meant to continue after this one ends; Popen itself would then warn."""

    def __del__(self, *_: object) -> None:
        """Says nothing."""


def start_pusher(output_dir: Path) -> None:
    """A process of its own, which outlives the run by some seconds at most; none where one is at
    work.

    Raises:
        OSError: it cannot be started.
    """
    mine = _pusher_by_folder.get(output_dir)
    if mine is not None and mine.poll() is None:  # it is working, or about to
        return
    if is_locked(queue(output_dir) / LOCK):
        return
    command = [sys.executable, "-P", "-m", "runner.tracking.pusher", str(output_dir.resolve())]
    with (queue(output_dir) / PUSHER_LOG_NAME).open("ab") as log:
        # A session of its own: Ctrl-C is meant for the run.  -P: files in the current folder are
        # not our code.
        _pusher_by_folder[output_dir] = DetachedProcess(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    """This process's own, and where its code lies, which a checkout that is not installed has from
    the present folder."""
    root = Path(__file__).parent.parent.parent
    if root.is_relative_to(sys.prefix):
        return dict(os.environ)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
    }


_pusher_by_folder: dict[
    Path, DetachedProcess
] = {}  # by output folder; polled again, so that no zombie remains
