"""``mlflow.json`` of a run: what MLflow has got of it, each thing marked when it is in.

One entry for each store, so that a record that is pushed here, then there, then here again is
nowhere in twice."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from runner.disk.atomic import write_text
from runner.disk.plain_file import parse_json, read_plain


@dataclass
class RunMarks:
    """Parts of one MLflow run that are already uploaded."""

    key: str = field(
        default_factory=lambda: uuid4().hex
    )  # a tag of the run, by which it is found when an answer was lost
    asked: bool = False  # MLflow was asked to create it
    run_id: str | None = None
    experiment: str | None = None  # its number in MLflow
    lines: dict[str, int] = field(default_factory=dict)  # phase -> last step
    ended: str | None = None  # the end that has been pushed: the state, and when


@dataclass
class Marks(RunMarks):
    """Parts of a record that are already uploaded."""

    params: bool = False
    tags: str | None = None  # digest
    inputs: bool = False
    files: dict[str, str] = field(default_factory=dict)  # name -> size and time
    replicates: dict[str, RunMarks] = field(default_factory=dict)  # runs below this one
    trouble: str | None = None  # the error that stopped the last push to MLflow


class RecordReplacedError(Exception):
    """The record was started anew while it was being pushed."""


class MarksFile:
    """``mlflow.json``; ``here`` is what it says of one store."""

    def __init__(self, folder: Path, store: str):
        self.path = folder / "mlflow.json"
        self.store = store
        self.stores = _read(self.path)
        self.exists = self.path.exists()
        self.here = self.stores.get(store, Marks())

    def save(self) -> None:
        """Writes it, whole or not at all.

        Raises:
            Replaced: it was there and is gone, as ``fresh=true`` takes it away.
        """
        if self.exists and not self.path.exists():
            raise RecordReplacedError("the run was started anew")
        self.stores[self.store] = self.here
        write_text(
            self.path,
            json.dumps({"stores": {name: asdict(marks) for name, marks in self.stores.items()}}),
        )
        self.exists = True


def read_marks(folder: Path, store: str) -> Marks:
    """Parts of a record that a store already has."""
    return _read(folder / "mlflow.json").get(store, Marks())


def _read(path: Path) -> dict[str, Marks]:
    try:
        content: dict[str, Any] = parse_json(read_plain(path))
        return {name: _marks(entry) for name, entry in content["stores"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _marks(found: dict[str, Any]) -> Marks:
    below = {name: RunMarks(**run) for name, run in found["replicates"].items()}
    return Marks(**found | {"replicates": below})
