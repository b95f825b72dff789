"""MLflow's store.

It has an address, which is shown and kept without passwords, a client, and the lock of
the writing process.

It does not import MLflow, which costs more than a small run, until a client is
requested.
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

# name of the store of a record's own output folder, at any location
OWN = "sqlite:///mlflow.db"
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",  # its messages on migrations would break into the display
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # it would try a server for minutes; the record on disk makes that pointless
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "PGCONNECT_TIMEOUT": "10",
}
SQLITE_SCHEME = "sqlite:///"
MAX_OPEN_ATTEMPTS = 3  # at opening a database: MLflow's own 15 take an hour
BUSY_SECONDS = 5.0  # that a database may be held by another program


class BusyError(Exception):
    """Another process holds a lock for longer than anybody should wait."""


class StoreError(Exception):
    """The store's database cannot be opened."""


def tracking_uri(output_dir: Path) -> str:
    """``MLFLOW_TRACKING_URI`` if set, otherwise the sqlite file in the output folder.

    It may hold a password: ``mask_secrets``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or _own(output_dir)


def _own(output_dir: Path) -> str:
    return sqlite_uri(output_dir / "mlflow.db")


def sqlite_uri(file: Path) -> str:
    """The address of a database file; SQLAlchemy reads %41 in it as A, and ends it at a question
    mark."""
    return SQLITE_SCHEME + str(file.resolve()).replace("%", "%25").replace("?", "%3F")


def database_file(uri: str) -> Path | None:
    """The file that an address of sqlite names; None: the address is of something else."""
    return (
        Path(unquote(uri.removeprefix(SQLITE_SCHEME).partition("?")[0]))
        if uri.startswith(SQLITE_SCHEME)
        else None
    )


def fault(uri: str, busy_seconds: float = BUSY_SECONDS) -> str | None:
    """Problem with the database file of a store, found without MLflow.

    None if there is no problem, or the store is not a file.
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
    """Under which a record remembers what a store has got."""
    return OWN if uri == _own(output_dir) else mask_secrets(uri)


def is_remote(uri: str) -> bool:
    """True if the store is reached over a network."""
    return "://" in uri and not uri.startswith(("sqlite:", "file:"))


@contextmanager
def lock_file(path: Path, seconds: float = -1) -> Iterator[None]:
    """Hold a lock file; a second process waits, for ever if ``seconds`` is negative.

    Raises:
        BusyError: the time is over.
    """
    from filelock import FileLock, Timeout  # import takes 0.1 s; only the pusher needs it

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise BusyError(
            f"{path} is held by another process, which pushes; no end of it in {seconds:.0f} s"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def one_at_a_time(uri: str, seconds: float = -1) -> Iterator[None]:
    """Context that allows one writer at a time.

    sqlite takes one writer at a time, and breaks when two processes create it: a lock next
    to the file orders them.
    """
    file = database_file(uri)
    if file is None:
        yield
        return
    with lock_file(file.parent / ".mlflow.lock", seconds):
        yield


@contextmanager
def remove_stray_folders(uri: str) -> Iterator[None]:
    """MLflow makes the folder of a database as its address spells it, %25 and all: what it made so
    is taken away."""
    spelt = (
        Path(uri.removeprefix(SQLITE_SCHEME)).parent
        if uri.startswith(SQLITE_SCHEME) and "%" in uri
        else None
    )
    strays = (
        []
        if spelt is None
        else [folder for folder in (spelt, *spelt.parents) if not folder.exists()]
    )
    try:
        yield
    finally:
        for folder in strays:
            with suppress(OSError):  # it is not empty, so it is no store
                folder.rmdir()


def check_store(uri: str) -> None:
    """Sets MLflow's environment, and checks that its database file can be opened.

    Raises:
        StoreError: it cannot.
    """
    if (wrong := fault(uri)) is not None:
        raise StoreError(wrong)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)


def connect(uri: str) -> MlflowClient:
    """A client of a store that ``check_store`` accepts; MLflow is imported here."""
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = min(utils.MAX_RETRY_COUNT, MAX_OPEN_ATTEMPTS)
    with remove_stray_folders(uri):
        return MlflowClient(tracking_uri=uri)
