"""``make lock``: write requirements.lock, versions and hashes of all packages required by the runner
and its tests.

Versions come from this environment; hashes cover all files of a version, for all systems and
Python versions.  torch and packages required only by torch are excluded, because each type of machine
needs its own build of torch with different hashes.
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
    """Text of the lock file, from the packages resolved by uv with their hashes."""
    packages = re.split(r"\n(?=\S)", resolved.strip())
    kept = [package for package in packages if not OF_TORCH.match(package)]
    return HEADER.format(torch=torch) + "\n".join(kept) + "\n"


def main() -> None:
    """Write the lock file."""
    versions = {
        canonicalize_name(distribution.name): distribution.version
        for distribution in distributions()
    }
    torch = version("torch").partition("+")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.writelines(
            f"{name}=={number.partition('+')[0]}\n" for name, number in versions.items()
        )
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
