"""Files of the machine's data folder, RUNNER_DATA_DIR, which tests read if they exist."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("RUNNER_DATA_DIR", "nowhere"))


def find_or_skip(*paths):
    """Paths of files in the data folder; skips the test if one is missing."""
    files = [FOLDER / path for path in paths]
    for file in files:
        if not file.is_file():
            pytest.skip(f"RUNNER_DATA_DIR is not set or lacks {file.name}")
    return files
