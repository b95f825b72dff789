"""MLflow's store: its URI, which is printed and recorded without passwords, its client, and the lock
of the writing process.

MLflow is imported only when a client is requested, because the import takes longer than a small run.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from runner.disk.secrets import mask_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient

# name of the store in a record's own output folder, independent of its location
OWN = "sqlite:///mlflow.db"
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",  # messages about migrations would disturb the display
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # MLflow would retry for minutes, which is unnecessary because the record is on disk
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "PGCONNECT_TIMEOUT": "10",
}
SQLITE_SCHEME = "sqlite:///"
MAX_OPEN_ATTEMPTS = 3  # attempts to open a database; MLflow's 15 take an hour
BUSY_SECONDS = 5.0  # timeout for a database held by another program


class BusyError(Exception):
    """Timeout of a lock held by another process."""


class StoreError(Exception):
    """The store's database cannot be opened."""


def tracking_uri(output_dir: Path) -> str:
    """``MLFLOW_TRACKING_URI`` if set, otherwise the sqlite file in the output folder.

    It may contain a password: use ``mask_secrets``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or _own(output_dir)


def _own(output_dir: Path) -> str:
    return sqlite_uri(output_dir / "mlflow.db")


def sqlite_uri(file: Path) -> str:
    """URI of a database file, escaped because SQLAlchemy decodes %41 and splits at a question mark."""
    return SQLITE_SCHEME + str(file.resolve()).replace("%", "%25").replace("?", "%3F")


def database_file(uri: str) -> Path | None:
    """File of an sqlite URI, or None for other URIs."""
    return (
        Path(unquote(uri.removeprefix(SQLITE_SCHEME).partition("?")[0]))
        if uri.startswith(SQLITE_SCHEME)
        else None
    )


def fault(uri: str, busy_seconds: float = BUSY_SECONDS) -> str | None:
    """Problem with the database file of a store, detected without MLflow.

    None without a problem or if the store is not a file.
    """
    file = database_file(uri)
    if file is None:
        return None
    if not file.exists():
        folder = next((folder for folder in file.parents if folder.exists()), file.parent)
        return (
            None
            if folder.is_dir() and os.access(folder, os.W_OK)
            else f"{file}: unable to open database file"
        )
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=busy_seconds)
        ) as database:
            database.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return f"{file}: {error}"
    return None


def store_name(uri: str, output_dir: Path) -> str:
    """Name of a store in the marks of a record."""
    return OWN if uri == _own(output_dir) else mask_secrets(uri)


def is_remote(uri: str) -> bool:
    """True if the store is on a network."""
    return "://" in uri and not uri.startswith(("sqlite:", "file:"))


@contextmanager
def lock_file(path: Path, seconds: float = -1) -> Iterator[None]:
    """Context that holds a lock file; others wait ``seconds``, or without a limit if negative.

    Raises:
        BusyError: after the timeout.
    """
    from filelock import FileLock, Timeout  # takes 0.1 s and is only needed by the pusher

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=seconds):
            yield
    except Timeout:
        raise BusyError(f"{path} is still held by another upload after {seconds:.0f} s") from None


@contextmanager
def one_at_a_time(uri: str, seconds: float = -1) -> Iterator[None]:
    """Context that allows one writer at a time, by a lock next to the file.

    sqlite supports one writer at a time, and fails if two processes create the file.
    """
    file = database_file(uri)
    if file is None:
        yield
        return
    with lock_file(file.parent / ".mlflow.lock", seconds):
        yield


@contextmanager
def remove_stray_folders(uri: str) -> Iterator[None]:
    """Remove folders that MLflow creates from the undecoded path of a database, including %25."""
    is_escaped = uri.startswith(SQLITE_SCHEME) and "%" in uri
    spelt = Path(uri.removeprefix(SQLITE_SCHEME)).parents if is_escaped else ()
    strays = [folder for folder in spelt if not folder.exists()]
    try:
        yield
    finally:
        for folder in strays:
            with suppress(OSError):  # not empty, so not created by MLflow
                folder.rmdir()


def check_store(uri: str) -> None:
    """Set MLflow's environment and check that its database file can be opened.

    Raises:
        StoreError: the file cannot be opened.
    """
    if (wrong := fault(uri)) is not None:
        raise StoreError(wrong)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)


def connect(uri: str) -> MlflowClient:
    """Client of a store accepted by ``check_store``; MLflow is imported here."""
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = min(utils.MAX_RETRY_COUNT, MAX_OPEN_ATTEMPTS)
    with remove_stray_folders(uri):
        return MlflowClient(tracking_uri=uri)
