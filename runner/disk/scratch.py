"""Temporary folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Temporary folder; if the process is killed, the system removes it."""
    with TemporaryDirectory(prefix="runner-") as name:
        yield Path(name)
