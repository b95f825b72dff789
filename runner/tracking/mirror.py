"""Mirror of a run's folder in MLflow, updated during the run, after it, or later by
``runner sync``.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.secrets import mask_secrets
from runner.errors import first_line
from runner.record.folders import runs
from runner.tracking.content import InvalidRecordError, RecordContent
from runner.tracking.marks import MarksFile, RecordReplacedError
from runner.tracking.push import Push, RunDeletedError
from runner.tracking.request import request_push
from runner.tracking.schema import prepare_database
from runner.tracking.store import (
    OWN,
    BusyError,
    StoreError,
    check_store,
    connect,
    database_file,
    lock_file,
    one_at_a_time,
    store_name,
    tracking_uri,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

FOLDER = "mlartifacts"


def follow(output_dir: Path) -> None:
    """Update the artifact URIs in the store of an output folder after the folder was moved."""
    file = output_dir / "mlflow.db"
    folder_uri = (output_dir / FOLDER).resolve().as_uri()
    if not file.exists():
        return
    with closing(sqlite3.connect(file, timeout=30)) as store, store:
        tables = {
            name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not {"experiments", "runs"} <= tables:
            return
        places = store.execute(
            "SELECT DISTINCT artifact_location FROM experiments WHERE artifact_location LIKE ?",
            (f"file://%/{FOLDER}",),
        ).fetchall()
        for (previous_uri,) in places:
            if previous_uri == folder_uri:
                continue
            store.execute(
                "UPDATE experiments SET artifact_location = ? WHERE artifact_location = ?",
                (folder_uri, previous_uri),
            )
            store.execute(
                "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?) WHERE substr(artifact_uri, 1, ?) = ?",
                (folder_uri, len(previous_uri) + 1, len(previous_uri) + 1, f"{previous_uri}/"),
            )


def open_client(output_dir: Path) -> MlflowClient:
    """Client of the store.

    MLflow is imported here, which takes seconds, and a missing database is created.  All records
    are requested again if the output folder's own database had to be replaced.
    """
    uri = tracking_uri(output_dir)
    check_store(uri)
    is_own = store_name(uri, output_dir) == OWN
    file = database_file(uri)
    if file is not None and (is_own or not file.exists()) and prepare_database(file):
        for folder in runs(output_dir):
            request_push(folder, output_dir)
    client = connect(uri)
    if is_own:
        follow(output_dir)
    return client


@dataclass
class Mirror:
    """Upload of a run's folder; ``trouble`` is the reason for a failure, and ``unreachable`` is
    True if the store was the cause."""

    folder: Path
    output_dir: Path
    client: MlflowClient | None = None
    seconds: float = -1  # longest wait for other uploads; negative: no limit
    trouble: str | None = None
    unreachable: bool = False

    def __post_init__(self) -> None:
        self.uri = tracking_uri(self.output_dir)
        self.store = store_name(self.uri, self.output_dir)

    @property
    def run_id(self) -> str | None:
        """Id of the run in MLflow, if known."""
        return MarksFile(self.folder, self.store).here.run_id

    def push(self) -> bool:
        """Upload new content; return True if MLflow is complete, and set ``trouble`` instead of
        raising."""
        self.trouble = None
        self.unreachable = False
        try:
            if not self.folder.is_dir():
                raise InvalidRecordError("no such folder")
            folder_lock = lock_file(self.folder / ".mlflow.lock", self.seconds)
            with folder_lock, one_at_a_time(self.uri, self.seconds):
                content = RecordContent.of(self.folder)
                file = MarksFile(self.folder, self.store)
                client = self._connect()
                own_files = (self.output_dir / FOLDER).resolve().as_uri()
                # a server chooses the location itself
                files_at = own_files if self.uri.startswith("sqlite") else None
                with suppress(RunDeletedError):
                    Push(client, file, self.folder, files_at).push(content)
                _note(file, None)
        except Exception as error:
            # MLflow's clients raise errors of requests, SQLAlchemy and MLflow; none may stop a run
            self.trouble = mask_secrets(first_line(error))
            if isinstance(error, BusyError | StoreError):
                self.unreachable = True
            elif not isinstance(error, RecordReplacedError | InvalidRecordError):
                self.unreachable = not self._answers(error)
            if not isinstance(error, RecordReplacedError | BusyError):
                self._record_trouble()
        return self.trouble is None

    def _connect(self) -> MlflowClient:
        self.client = self.client or open_client(self.output_dir)
        return self.client

    def _answers(self, error: Exception) -> bool:
        """True if the store is reachable and rejected the data."""
        from requests import ConnectionError, Timeout

        link: BaseException | None = error
        while link is not None:
            if isinstance(link, ConnectionError | Timeout):
                return False
            link = link.__cause__ or link.__context__
        try:
            with one_at_a_time(self.uri, self.seconds):
                self._connect().search_experiments(max_results=1)
        except Exception:
            return False
        return True

    def _record_trouble(self) -> None:
        """Record the problem in the run's folder, where the run reads it."""
        if not self.folder.is_dir():
            return
        with suppress(OSError, RecordReplacedError), lock_file(self.folder / ".mlflow.lock"):
            _note(MarksFile(self.folder, self.store), self.trouble)


def _note(file: MarksFile, trouble: str | None) -> None:
    if trouble is not None or file.here.trouble is not None:  # errors are also cleared
        file.here.trouble = trouble
        file.save()
