"""Small files that are written whole or not at all, and survive a power cut; free of torch, so that
reading a record starts fast."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNSYNCABLE_ERRNOS = (errno.EINVAL, errno.ENOTSUP)  # of file systems that cannot flush a folder


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Temporary path next to a file; what is written there replaces the file, flushed to disk.

    Nothing is replaced if the context raises.
    """
    path = path.absolute()  # an empty path has no name
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
    """Flushes a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE_ERRNOS:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Makes a folder with its parents, flushed to disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes under a temporary name, flushes to disk and renames."""
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` of text."""
    write_bytes(path, text.encode())


def orphans(folder: Path, inside: bool = True, name: str = "") -> Iterator[Path]:
    """Temporary files that ``replace_file`` of a killed process left in a folder.

    With ``inside``, the folders in it are searched too; with ``name``, only those of that file.
    """
    for path in _hidden(folder, inside):
        match = re.fullmatch(r"\.(.+)\.(\d+)(-journal)?", path.name)
        if match is None or name not in ("", match[1]):
            continue
        process = int(match[2])
        # a file with our own number is left over too: this process has written nothing yet
        if process == os.getpid() or not alive(process):
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


def alive(process: int) -> bool:
    """True if a process with that number exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
