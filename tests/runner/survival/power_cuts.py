"""States of folders after a power cut.

A file keeps the content, and a folder the names, of its last ``fsync``; a name that is on disk
without its content is a file cut in half.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


class PowerCuts:
    """States of a folder on disk, one after each flush of its own names."""

    def __init__(self, folder: Path, copies: Path):
        self.folder = folder
        self.copies = copies
        self.states: list[Path] = []
        self.contents: dict[int, bytes] = {}
        self.names: dict[Path, dict[str, int]] = {}
        self._open: list[int] = []  # descriptors of open files are not reused
        self._lock = threading.RLock()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Context that records flushes of all threads."""
        real = os.fsync

        def fsync(descriptor: int) -> None:
            real(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            with self._lock:
                number = os.fstat(descriptor).st_ino
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    with os.scandir(path) as entries:
                        self.names[path] = {entry.name: entry.inode() for entry in entries}
                    if path == self.folder:
                        self._copy(self.folder, self.copies / f"{len(self.states):03d}")
                        self.states.append(self.copies / f"{len(self.states):03d}")
                else:
                    self.contents[number] = path.read_bytes() if path.exists() else b""
                    self._open.append(os.dup(descriptor))

        try:
            with mock.patch.object(os, "fsync", fsync):
                yield
        finally:
            for descriptor in self._open:
                os.close(descriptor)

    def _copy(self, folder: Path, target: Path) -> None:
        target.mkdir(parents=True)
        for name, number in self.names.get(folder, {}).items():
            path = folder / name
            if not path.exists():  # removed: a name that comes back only costs space
                continue
            if path.is_dir():
                self._copy(path, target / name)
            elif number in self.contents:
                (target / name).write_bytes(self.contents[number])
            else:
                content = path.read_bytes()
                (target / name).write_bytes(content[: len(content) // 2])
