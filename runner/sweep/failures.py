"""Where the jobs of a sweep, in whatever process, note that they failed: a file in a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.mistakes import FAILURES
from runner.record.atomic import left_behind


@contextmanager
def noted_failures() -> Iterator[Path]:
    """The file, told to the jobs by an environment variable.  Its folder goes with the sweep; those of sweeps that were
    killed go now."""
    for old in Path(tempfile.gettempdir()).glob("runner-*-*"):
        found = re.fullmatch(r"runner-(\d+)-\w+", old.name)
        if found and left_behind(int(found[1])):
            shutil.rmtree(old, ignore_errors=True)  # somebody else's stays: it cannot be removed
    with tempfile.TemporaryDirectory(prefix=f"runner-{os.getpid()}-") as folder:
        os.environ[FAILURES] = str(Path(folder) / "failures.jsonl")
        try:
            yield Path(folder) / "failures.jsonl"
        finally:
            del os.environ[FAILURES]
