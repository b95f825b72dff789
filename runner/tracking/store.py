"""MLflow's store: its address, which is shown and kept without passwords, its client, and the lock of who writes.

Free of MLflow, whose import costs more than a small run, until a client is asked for."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient

OWN = "sqlite:///mlflow.db"  # what records call the store of their own output folder, wherever that is moved
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",  # its news of migrations would break into the display
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # it would try a server for minutes; the record on disk makes that pointless
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}


def tracking_uri(output_dir: Path) -> str:
    """``MLFLOW_TRACKING_URI`` if set, otherwise the sqlite file in the output folder.  It may hold a password: ``masked``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or _own(output_dir)


def _own(output_dir: Path) -> str:
    return f"sqlite:///{(output_dir / 'mlflow.db').resolve()}"


def masked(text: str) -> str:
    """A text in which no address shows the password, or the key, that it holds."""
    text = re.sub(r"(://[^\s/:@]*):[^\s/]*@", r"\1:***@", text)
    return re.sub(r"(?i)([?&](?:password|passwd|pwd|token|secret|key|api_key|access_key)=)[^\s&#]+", r"\1***", text)


def store_name(uri: str, output_dir: Path) -> str:
    """Under which a record remembers what a store has got."""
    return OWN if uri == _own(output_dir) else masked(uri)


def is_remote(uri: str) -> bool:
    """Whether a network lies between."""
    return "://" in uri and not uri.startswith(("sqlite:", "file:"))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Whoever comes second waits."""
    from filelock import FileLock  # a tenth of a second, and the pusher alone needs it

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path):
        yield


@contextmanager
def one_at_a_time(uri: str) -> Iterator[None]:
    """sqlite takes one writer at a time, and breaks when two processes create it: a lock beside the file orders them."""
    if not uri.startswith("sqlite:///"):
        yield
        return
    with locked(Path(uri.removeprefix("sqlite:///")).parent / ".mlflow.lock"):
        yield


def connect(uri: str) -> MlflowClient:
    """A client; MLflow is imported here."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)
