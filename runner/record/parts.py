"""Replicates of a run that are jobs of their own: each has a record inside the run's folder,
``<run>/parts/<r>/…``."""

from __future__ import annotations

import os
from pathlib import Path

PARTS = "parts"
ALONE = "RUNNER_REPLICATE"  # the environment variable that marks a process as one of them


def replicate_output_folder(folder: Path, replicate: int) -> Path:
    """The output folder of one replicate of a run."""
    return folder / PARTS / str(replicate)


def replicate_record_folder(folder: Path, replicate: int) -> Path:
    """Folder of that replicate's record."""
    return replicate_output_folder(folder, replicate) / folder.parent.name / folder.name


def alone() -> int | None:
    """The only replicate that this process is to compute; None: all of them."""
    number = os.environ.get(ALONE)
    return int(number) if number else None
