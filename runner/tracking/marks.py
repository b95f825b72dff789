"""``mlflow.json`` of a run: marks of its uploaded parts.

There is one entry per store, so that a record uploaded to alternating stores is duplicated in
none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pydantic import TypeAdapter

from runner.disk.atomic import write_text
from runner.disk.plain_file import read_plain


@dataclass
class RunMarks:
    """Parts of one MLflow run that are already uploaded."""

    # tag that identifies the run if a reply was lost
    key: str = field(default_factory=lambda: uuid4().hex)
    asked: bool = False  # True after the request to create the run
    run_id: str | None = None
    experiment: str | None = None  # id of the experiment in MLflow
    lines: dict[str, int] = field(default_factory=dict)  # phase -> last step
    ended: str | None = None  # uploaded end: state and time


@dataclass
class Marks(RunMarks):
    """Parts of a record that are already uploaded."""

    params: bool = False
    tags: str | None = None  # digest
    inputs: bool = False
    files: dict[str, str] = field(default_factory=dict)  # name -> size and time
    replicates: dict[str, RunMarks] = field(default_factory=dict)  # nested runs
    trouble: str | None = None  # error of the last push


CONTENT = TypeAdapter(dict[str, dict[str, Marks]])  # "stores": marks by name of the store


class RecordReplacedError(Exception):
    """The record was replaced during the upload."""


class MarksFile:
    """``mlflow.json``; ``here`` are the marks of one store."""

    def __init__(self, folder: Path, store: str):
        self.path = folder / "mlflow.json"
        self.store = store
        self.stores = _read(self.path)
        self.exists = self.path.exists()
        self.here = self.stores.get(store, Marks())

    def save(self) -> None:
        """Write the file atomically.

        Raises:
            RecordReplacedError: the file was removed, as by ``fresh=true``.
        """
        if self.exists and not self.path.exists():
            raise RecordReplacedError("the run was restarted")
        self.stores[self.store] = self.here
        write_text(self.path, CONTENT.dump_json({"stores": self.stores}).decode())
        self.exists = True


def read_marks(folder: Path, store: str) -> Marks:
    """Read the marks of a record for a store."""
    return _read(folder / "mlflow.json").get(store, Marks())


def _read(path: Path) -> dict[str, Marks]:
    try:
        return CONTENT.validate_json(read_plain(path))["stores"]
    except (OSError, ValueError, KeyError):
        return {}
