"""The package, built as a wheel and installed where there is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("runner", "components", "conf")


def call(*words: object, cwd: Path) -> str:
    """Output of a command that finds neither the checkout nor its data.

    Raises:
        AssertionError: it fails.
    """
    hidden = {"PYTHONPATH", "RUNNER_DATA_DIR"}
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | {
        "OMP_NUM_THREADS": "1"
    }
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """A wheel, built from a copy, because a build leaves files next to the sources."""
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / "copy" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "copy" / name)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    call(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, folder / "copy", cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> tuple[Path, str]:
    """A new environment with the wheel: its folder of programs, and its site-packages.

    The packages that the wheel needs are those of this interpreter. A path file does not follow
    the path files in their folder, so it does not lead to the checkout.
    """
    venv.create(folder)
    python = folder / "bin" / "python"
    site = call(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    ).strip()
    path_file = Path(site) / "needed.pth"
    path_file.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    options = ("--quiet", "--no-deps", "--no-index")
    call(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=folder)
    return folder / "bin", site
