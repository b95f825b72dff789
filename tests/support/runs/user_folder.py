"""Python in the folder of a user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run_python(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a user's folder with the tested package."""
    environment = {
        "PYTHONPATH": os.pathsep.join([".", str(ROOT)]),
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "HOME": str(folder),
    }
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )


def run_command(words: list[str], folder: Path) -> str:
    """Run a command in a user's folder without MLflow; return its output."""
    done = run_python(["-m", "runner.commands.cli", *words, "tracking=false"], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
