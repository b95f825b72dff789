"""Atomic writes of small files, flushed to disk; without torch, so that reading a record starts
fast."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# errors of file systems that cannot flush a folder
_UNSYNCABLE_ERRNOS = (errno.EINVAL, errno.ENOTSUP)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Context with a temporary path; on exit its content is flushed to disk and replaces the file.

    The file is kept if the context raises.
    """
    path = path.absolute()  # because an empty path has no name
    for orphan in orphans(path.parent, inside=False, name=path.name):
        orphan.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # the pattern of orphans()
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE_ERRNOS:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, flushed to disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary file, flush it to disk and rename it."""
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` for text."""
    write_bytes(path, text.encode())


def orphans(folder: Path, inside: bool = True, name: str = "") -> Iterator[Path]:
    """Temporary files of ``replace_file`` that killed processes left in a folder.

    With ``inside`` subfolders are searched too; with ``name`` only files for that target.
    """
    for path in _hidden(folder, inside):
        match = re.fullmatch(r"\.(.+)\.(\d+)(-journal)?", path.name)
        if match is None or name not in ("", match[1]):
            continue
        process = int(match[2])
        # a file with this process's id is an orphan too: this process has written nothing yet
        if process == os.getpid() or not alive(process):
            yield path


def _hidden(folder: Path, inside: bool) -> Iterator[Path]:
    """Hidden files and folders in readable folders."""
    folders = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                yield Path(entry.path)
            if inside and entry.is_dir():
                folders.append(Path(entry.path))
    for each in folders:
        yield from _hidden(each, inside=False)


def alive(process: int) -> bool:
    """True if a process with this id exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
