"""The package, built as a wheel and installed without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("runner", "components", "conf", "hydra_plugins")


def call(*words: object, cwd: Path) -> str:
    """Output of a command that has access to neither the checkout nor its data.

    Raises:
        AssertionError: the command fails.
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
    """Wheel built from a copy, because a build leaves files next to the sources."""
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
    """New environment with the wheel: its folder of programs, and its site-packages.

    The wheel's dependencies are links to this interpreter's packages, except the link to the
    checkout. A path file would not suffice: Hydra's plug-ins must be installed.
    """
    venv.create(folder)
    python = folder / "bin" / "python"
    site = call(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    ).strip()
    others = Path(sysconfig.get_path("purelib"))
    # a namespace package: the wheel adds its own package to it
    (Path(site) / "hydra_plugins").mkdir()
    for package in (*others.iterdir(), *others.glob("hydra_plugins/*")):
        if "bayes_runner" not in package.name and package.name not in (*PACKAGES, "__pycache__"):
            (Path(site) / package.relative_to(others)).symlink_to(package)
    options = ("--quiet", "--no-deps", "--no-index")
    call(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=folder)
    return folder / "bin", site
