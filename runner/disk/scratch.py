"""Temporary folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Temporary folder; if the process is killed, or a file is in use, the system removes it."""
    with TemporaryDirectory(prefix="runner-", ignore_cleanup_errors=True) as name:
        yield Path(name)
