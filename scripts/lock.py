"""Writes requirements.lock: versions and hashes of every package that the runner and its tests
need, for ``make lock``.

Versions are those of this environment, hashes those of every file of a version, for all systems and
Python versions.  torch and the packages that only torch needs are left out: each kind of machine
takes its own build of torch, with other hashes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.metadata import distributions, version
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = """\
# Versions and hashes of the packages with which the tests passed (make lock).  make setup installs them:
# pip install torch=={torch}; pip install --require-hashes --no-deps -r requirements.lock
"""
OF_TORCH = re.compile(r"(torch|triton|nvidia-.*|cuda-.*)==")


def lock(resolved: str, torch: str) -> str:
    """The lock, given the packages that uv resolved, each with lines of hashes."""
    packages = re.split(r"\n(?=\S)", resolved.strip())
    kept = [package for package in packages if not OF_TORCH.match(package)]
    return HEADER.format(torch=torch) + "\n".join(kept) + "\n"


def main() -> None:
    """Write the file."""
    here = {canonicalize_name(found.name): found.version for found in distributions()}
    torch = version("torch").partition("+")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.writelines(f"{name}=={number.partition('+')[0]}\n" for name, number in here.items())
        pins.flush()
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--extra", "dev")
        ]
        command += ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--quiet"]
        command += ["--python-version", "3.11", "--constraint", pins.name]
        resolved = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    LOCK.write_text(lock(resolved.stdout, torch), encoding="utf-8")


if __name__ == "__main__":
    main()
