"""metrics.jsonl: one line for each recorded step, evaluation and end of a replicate, in the order
in which they came."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

from runner.disk.atomic import sync, write_bytes
from runner.disk.plain_file import NotPlainFileError, parse_json, read_plain
from runner.record.facts import NAME as FACTS
from runner.record.facts import skip_unreadable

NAME = "metrics.jsonl"
TAIL_BYTES = 65536  # in which the last line is looked for
KeyTypes = Mapping[str, type | tuple[type, ...]]
REQUIRED_KEY_TYPES: KeyTypes = {
    "step": int,
    "replicate": int,
    "time": (int, float),
    "phase": str,
    "metrics": dict,
}  # every line

Line = dict[str, Any]


def _parse_line(text: bytes, key_types: KeyTypes = REQUIRED_KEY_TYPES) -> Line | None:
    try:
        line = parse_json(text)
    except ValueError:
        return None
    is_complete = isinstance(line, dict) and all(
        isinstance(line.get(key), kind) for key, kind in key_types.items()
    )
    return line if is_complete else None


def read_lines(
    folder: Path, name: str = NAME, key_types: KeyTypes = REQUIRED_KEY_TYPES
) -> list[Line]:
    """The lines of metrics.jsonl (or of a file like it, with other keys), if there are any; one that
    is broken, or was cut short by a crash, is left out."""
    try:
        content = read_plain(folder / name)
    except (FileNotFoundError, NotPlainFileError):
        return []
    lines = (_parse_line(text, key_types) for text in content.split(b"\n"))
    return [line for line in lines if line is not None]


def newest_line(folder: Path) -> Line | None:
    """The last whole line of a run that may be going; None: there is none."""
    with suppress(OSError), (folder / NAME).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        lines = map(_parse_line, reversed(file.read().split(b"\n")))
        return next((line for line in lines if line is not None), None)
    return None


def traces(folder: Path) -> bool:
    """True if a run has been at work in a folder."""
    files = [folder / name for name in (FACTS, NAME)]
    return any(map(Path.exists, [*files, *(folder / "checkpoints").glob("r*")]))


def readable_lines(folder: Path) -> list[Line]:
    """``read_lines`` of a record shown next to others.

    Empty, with a warning, if this user may not read them.
    """
    with skip_unreadable(folder / NAME):
        return read_lines(folder)
    return []


def by_replicate(line: Line, metric: str) -> list[tuple[int, Any]]:
    """A line's values of a metric, each with its replicate: one, all, or no values."""
    values = line["metrics"].get(metric)
    if isinstance(values, list):
        return list(enumerate(values))
    return [] if values is None else [(line["replicate"], values)]


def write_lines(folder: Path, lines: list[Line]) -> None:
    """metrics.jsonl anew, whole or not at all."""
    write_bytes(folder / NAME, b"".join(_text(line) for line in lines))


def _text(line: Line) -> bytes:
    return json.dumps(line).encode() + b"\n"


# lines that wait to be encoded: encoding them one by one takes a fifth of the time between steps
AT_ONCE = 64


class Lines:
    """metrics.jsonl of a run that is going.  One thread adds; any may flush."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._file: IO[bytes] | None = None
        self._name_is_synced = False
        self._waiting: deque[Line] = deque()
        self._writing = Lock()

    def add(self, line: Line) -> None:
        self._waiting.append(line)
        if len(self._waiting) >= AT_ONCE:
            self._write()

    def _write(self) -> None:
        with self._writing:
            if self._waiting and self._file is None:
                self._file = (self.folder / NAME).open("ab")
            while self._waiting and self._file is not None:
                self._file.write(_text(self._waiting[0]))
                self._waiting.popleft()

    def flush(self) -> None:
        """Lets others read what was added."""
        self._write()
        if self._file is not None:
            self._file.flush()

    def sync(self) -> None:
        """Puts what was added on the disk itself, where a power cut leaves it."""
        self.flush()
        if self._file is not None:
            os.fsync(self._file.fileno())
            if not self._name_is_synced:
                sync(self.folder)
                self._name_is_synced = True

    def drop(self) -> None:
        """Discard lines that are added but not yet written: another process now owns the file."""
        self._waiting.clear()
        if self._file is not None:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._file.fileno())
            self.close()

    def close(self) -> None:
        self._write()
        if self._file is not None:
            self._file.close()
            self._file = None

    def rewind(self, replicate: int, step: int, finished: set[int]) -> str | None:
        """Keeps what a replicate that goes on from a step does not write again: the lines of those
        that are finished, and its own up to that step but for its last evaluation, which it has
        still to make.  Returns what was found lost."""
        self.close()  # the file is replaced: lines written on to the old one would be lost
        path = self.folder / NAME
        if not path.exists():
            return (
                f"{NAME} was missing: what it said of the steps before is lost"
                if finished or step > 0
                else None
            )

        def is_kept(line: Line) -> bool:
            is_current = (
                line["replicate"] == replicate and line["step"] <= step and line["phase"] != "final"
            )
            return is_current or line["replicate"] in finished

        before = read_plain(path)
        parsed = [_parse_line(text) for text in before.split(b"\n")]
        lines = [line for line in parsed if line is not None and is_kept(line)]
        if before != b"".join(map(_text, lines)):
            write_lines(self.folder, lines)
        broken = parsed[:-1].count(None)  # the last was cut short by a crash
        return (
            f"{NAME}: {broken} broken {'line is' if broken == 1 else 'lines are'} left out"
            if broken
            else None
        )
