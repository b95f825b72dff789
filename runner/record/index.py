"""Index of the records of an experiment: the few facts that are asked of all of them at once.

``outputs/.index/<experiment>`` holds, for each run, the identity of its run.json (inode, time of
change, size) and these facts.  run.json stays the truth: an entry counts only if the file is still
the same, everything else is read anew, and an index that is missing, damaged or of another version
is rebuilt.  Several processes may write it: each replaces the whole file, and entries that another
one had are read again.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from runner.disk.atomic import write_bytes
from runner.disk.plain_file import parse_json, read_plain
from runner.record import facts

FOLDER = ".index"  # in the output folder
VERSION = b"runner index 1"
STEPS = re.compile(r"^steps: (\d+)$", re.MULTILINE)
WRITE_AFTER = 50  # records read anew before the index is written again
# A file may be edited twice within one tick of its clock: younger ones are read each time.
SETTLED_SECONDS = 2.0

Identity = tuple[int, int, int]


class RecordSummary(NamedTuple):
    """Facts of one record."""

    state: str
    data: str  # empty: not known
    choice: dict[str, Any]
    smoke: bool
    has_steps: bool  # False: its config says no number of steps
    rate: float | None  # seconds of a step, or of a replicate without steps; None: not known

    @classmethod
    def read(cls, folder: Path) -> RecordSummary | None:
        """Facts by the files of a record; None: run.json is missing or damaged.

        Raises:
            PermissionError: this user may not read it.
        """
        known = facts.load_facts(folder)
        if known is None:
            return None
        try:
            steps = STEPS.search((folder / "config.yaml").read_text(encoding="utf-8"))
            units = known["replicates"] * (int(steps[1]) if steps else 1)
            rate = None if known.get("taken_over") else known["seconds"] / units or None
        except (OSError, ValueError, KeyError, ZeroDivisionError):
            steps = rate = None
        return cls(
            known["state"],
            known.get("data", ""),
            known.get("choice", {}),
            known.get("smoke", False),
            steps is not None,
            rate,
        )


Entries = dict[str, tuple[Identity, RecordSummary | None]]  # by the name of a run's folder


def read_summaries(experiment: Path) -> dict[str, RecordSummary | None]:
    """Facts of all records in an experiment's folder, by the name of the run's folder.

    None: its run.json is damaged.  Records that this user may not read are left out with a
    warning.
    """
    path = experiment.parent / FOLDER / experiment.name
    known = load_entries(path)
    entries: Entries = {}
    n_read = 0
    settled = time.time_ns() - int(SETTLED_SECONDS * 1e9)
    unsettled = set()
    for name, identity in _identities(experiment):
        entry = known.get(name)
        with facts.skip_unreadable(experiment / name):
            if entry is None or entry[0] != identity:
                entry = (identity, RecordSummary.read(experiment / name))
                n_read += 1
                if identity[1] > settled:
                    unsettled.add(name)
            entries[name] = entry
    n_new = n_read - len(unsettled)
    n_gone = sum(name not in entries for name in known)
    if max(n_new, n_gone) >= WRITE_AFTER:
        save_entries(path, {name: e for name, e in entries.items() if name not in unsettled})
    return {name: summary for name, (_, summary) in entries.items()}


def _identities(experiment: Path) -> list[tuple[str, Identity]]:
    """Names of the folders with a run.json, and the identity of that file."""
    identities = []
    for folder in facts.list_folder(experiment):
        with suppress(OSError), facts.skip_unreadable(folder):
            status = os.stat(f"{folder}/{facts.NAME}")
            identities.append((folder.name, (status.st_ino, status.st_mtime_ns, status.st_size)))
    return identities


def load_entries(path: Path) -> Entries:
    """Entries of an index; empty if it is missing, damaged or of another version."""
    try:
        head, _, body = read_plain(path).partition(b"\n")
        if head != _head(body):
            return {}
        return {
            name: ((inode, changed, size), None if rest is None else RecordSummary(*rest))
            for name, inode, changed, size, rest in parse_json(body)
        }
    except (OSError, ValueError, TypeError):
        return {}


def save_entries(path: Path, entries: Entries) -> None:
    """Replaces an index; a folder that this user may not write is left as it is."""
    rows = [[name, *identity, summary] for name, (identity, summary) in entries.items()]
    body = json.dumps(rows, separators=(",", ":")).encode()
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, _head(body) + b"\n" + body)


def _head(body: bytes) -> bytes:
    """First line of an index: its version, and a checksum of the rest."""
    return VERSION + b" %08x" % zlib.crc32(body)
