"""States of a run's folder after ``kill -9`` at each file operation, and differences of two folders.

A killed process loses its memory and leaves the disk unchanged.  A copy of the folder just before a
file operation is therefore the state after a kill at that moment, so a single run produces
all states."""

from __future__ import annotations

import builtins
import hashlib
import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from safetensors.torch import load

# a small network on few rows
SMALL_RUN = [
    "dataset=linear_simulation",
    "dataset.n_train=20",
    "dataset.n_test=10",
    "model=mlp",
    "model.widths=[3]",
    "inference=map",
]
CALLS = (
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (os, "replace"),
    (os, "rename"),
    (os, "fsync"),
    (os, "unlink"),
    (os, "remove"),
    (os, "mkdir"),
    (os, "rmdir"),
)


@contextmanager
def watch(inside: Path, before: Callable[[str], None]) -> Iterator[None]:
    """Context that calls ``before`` before each file operation in a folder; threads are serialised."""
    one_at_a_time = threading.RLock()
    telling = threading.local()

    def intercept(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def ask(path: Any, *arguments: Any, **keys: Any) -> Any:
            if "now" in vars(telling) or not (name == "fsync" or str(inside) in str(path)):
                return real(path, *arguments, **keys)
            with one_at_a_time:
                telling.now = name
                try:
                    before(f"{name} {path}")
                finally:
                    del telling.now
                return real(path, *arguments, **keys)

        return ask

    patches = [
        mock.patch.object(owner, name, intercept(name, getattr(owner, name)))
        for owner, name in CALLS
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def state(folder: Path) -> str:
    """Hash of all names and contents in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"/")
    return digest.hexdigest()


class Crashes:
    """Distinct copies of a folder at every file operation inside ``take_copies``."""

    def __init__(self, folder: Path, copies: Path):
        self.folder = folder
        self.copies = copies
        self.points = 0
        self.states: dict[str, tuple[Path, str]] = {}

    def _copy(self, operation: str) -> None:
        self.points += 1
        state_found = state(self.folder) if self.folder.exists() else "nothing"
        if state_found not in self.states:
            copy = self.copies / f"{len(self.states):03d}"
            if self.folder.exists():
                shutil.copytree(self.folder, copy)
            self.states[state_found] = (copy, operation)

    @contextmanager
    def take_copies(self) -> Iterator[None]:
        with watch(self.folder, self._copy):
            yield

    def put_back(self, copy: Path) -> None:
        """Restore the folder to the state after a kill."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if copy.exists():
            shutil.copytree(copy, self.folder)


CLOCK = {
    "started",
    "ended",
    "seconds",
    "usage",
    "time",
    "cpu_seconds",
    "cost/cpu_seconds",
    "cost/attack_cpu_seconds",
}


def _without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_clock(v) for k, v in value.items() if k not in CLOCK}
    return [_without_clock(v) for v in value] if isinstance(value, list) else value


def _content(path: Path) -> Any:
    """Content of a file without times."""
    if path.suffix == ".json":
        facts = _without_clock(json.loads(path.read_text()))
        facts.pop("sidecar_sha256", None)  # excludes its time
        if "files" in facts:  # metrics.jsonl contains times
            facts["files"] = sorted(facts["files"])
        return json.dumps(facts, sort_keys=True)  # NaN is NaN
    if path.suffix == ".jsonl":
        return [
            json.dumps(_without_clock(json.loads(line))) for line in path.read_text().splitlines()
        ]
    if path.suffix == ".safetensors":
        return {k: v.numpy().tobytes() for k, v in load(path.read_bytes()).items()}
    if path.suffix == ".nc":
        return _groups(path)
    return path.read_bytes()


def _groups(path: Path) -> dict[str, Any]:
    import h5py

    contents_found: dict[str, Any] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, of: (
                contents_found.update({name: of[()].tobytes()})
                if isinstance(of, h5py.Dataset)
                else None
            )
        )
    return contents_found


def contents(folder: Path) -> dict[str, Any]:
    """Content of all files of a record, including hidden ones, without times and leases."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith(".lock")]
    return {str(p.relative_to(folder)): _content(p) for p in files}


def differences(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Files that differ between two records or exist in only one."""
    return [
        name
        for name in sorted(first.keys() | other.keys())
        if first.get(name, 0) != other.get(name, 0)
    ]


def draw_data(figure: Figure, path: Path, **_: Any) -> None:
    """Replacement for ``Figure.savefig``, which dominates small runs: writes the data of the figure."""
    shown: list[Any] = []
    for axes in figure.axes:
        shown += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.axis()]
        shown += [line.get_xydata().tolist() for line in axes.get_lines()]
        shown += [np.asarray(owner.get_offsets()).tolist() for owner in axes.collections]
        shown += [np.asarray(image.get_array()).tolist() for image in axes.images]
        shown += [patch.get_extents().bounds for patch in axes.patches]
    with path.open("w") as file:
        file.write(repr(shown))
