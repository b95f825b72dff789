"""Small files that are written whole or not at all; free of torch, so that reading a record starts
fast."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Writes under a temporary name, flushes to disk and renames."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # as remove_orphans knows it
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` of text."""
    write_bytes(path, text.encode())


def orphans(folder: Path, inside: bool = True) -> Iterator[Path]:
    """Temporary files that ``write_bytes`` of a killed process left in a folder.

    With ``inside``, the folders in it are searched too.
    """
    for path in _hidden(folder, inside):
        match = re.fullmatch(r"\..+\.(\d+)", path.name)
        if match and has_no_owner(int(match[1])):
            yield path


def _hidden(folder: Path, inside: bool) -> Iterator[Path]:
    """Files and folders with a name that begins with a dot, as far as this user may look."""
    folders = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                yield Path(entry.path)
            if inside and entry.is_dir():
                folders.append(Path(entry.path))
    for each in folders:
        yield from _hidden(each, inside=False)


def remove_orphans(folder: Path) -> None:
    """Removes ``orphans``."""
    for path in orphans(folder):
        path.unlink(missing_ok=True)


def has_no_owner(process: int) -> bool:
    """True if a file written by the process with that number has no owner any more.

    A file with our own number is left over too: ours has written nothing at this point.
    """
    return process == os.getpid() or not alive(process)


def alive(process: int) -> bool:
    """True if a process with that number exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
