"""Temporary folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder; one of a process that was killed is left to the system."""
    with TemporaryDirectory(prefix="runner-") as name:
        yield Path(name)
