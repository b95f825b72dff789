"""metrics.jsonl: one line for each recorded step, evaluation and end of a replicate, in order."""

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
TAIL_BYTES = 65536  # size of the tail searched for the last line
KeyTypes = Mapping[str, type | tuple[type, ...]]
# keys of all lines
REQUIRED_KEY_TYPES: KeyTypes = {
    "step": int,
    "replicate": int,
    "time": (int, float),
    "phase": str,
    "metrics": dict,
}

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
    """Lines of metrics.jsonl (or a similar file with other keys), without damaged or truncated ones."""
    try:
        content = read_plain(folder / name)
    except (FileNotFoundError, NotPlainFileError):
        return []
    lines = (_parse_line(text, key_types) for text in content.split(b"\n"))
    return [line for line in lines if line is not None]


def newest_line(folder: Path) -> Line | None:
    """Last complete line of a run that may be active, or None."""
    with suppress(OSError), (folder / NAME).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        lines = map(_parse_line, reversed(file.read().split(b"\n")))
        return next((line for line in lines if line is not None), None)
    return None


def traces(folder: Path) -> bool:
    """True if a folder has traces of a run."""
    files = [folder / name for name in (FACTS, NAME)]
    return any(map(Path.exists, [*files, *(folder / "checkpoints").glob("r*")]))


def readable_lines(folder: Path) -> list[Line]:
    """``read_lines`` for lists of records: empty, with a warning, if permission is denied."""
    with skip_unreadable(folder / NAME):
        return read_lines(folder)
    return []


def write_lines(folder: Path, lines: list[Line]) -> None:
    """Replace metrics.jsonl atomically."""
    write_bytes(folder / NAME, b"".join(_text(line) for line in lines))


def _text(line: Line) -> bytes:
    return json.dumps(line).encode() + b"\n"


# number of lines encoded together; encoding them singly takes a fifth of the time between steps
AT_ONCE = 64


class Lines:
    """metrics.jsonl of an active run.  One thread adds lines; any thread may flush."""

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
        """Make added lines visible to other processes."""
        self._write()
        if self._file is not None:
            self._file.flush()

    def sync(self) -> None:
        """Flush added lines to disk."""
        self.flush()
        if self._file is not None:
            os.fsync(self._file.fileno())
            if not self._name_is_synced:
                sync(self.folder)
                self._name_is_synced = True

    def drop(self) -> None:
        """Discard lines that are not yet written, because another process owns the file."""
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
        """Drop the lines that a replicate resumed from ``step`` writes again.

        Lines of finished replicates are kept, and the replicate's own lines up to that step,
        without the final evaluation.  Returns a description of lost lines."""
        self.close()  # because the file is replaced
        path = self.folder / NAME
        if not path.exists():
            return (
                f"{NAME} was missing: the lines of earlier steps are lost"
                if finished or step > 0
                else None
            )

        def is_kept(line: Line) -> bool:
            is_current = (
                line["replicate"] == replicate and line["step"] <= step and line["phase"] != "final"
            )
            return is_current or line["replicate"] in finished

        content = read_plain(path)
        parsed = [_parse_line(text) for text in content.split(b"\n")]
        lines = [line for line in parsed if line is not None and is_kept(line)]
        if content != b"".join(map(_text, lines)):
            write_lines(self.folder, lines)
        broken = parsed[:-1].count(None)  # the last one was truncated by a crash
        return (
            f"{NAME}: skipped {broken} damaged {'line' if broken == 1 else 'lines'}"
            if broken
            else None
        )
