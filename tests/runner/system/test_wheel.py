"""The wheel: it holds all that the packages read, and runs where there is no checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent
PACKAGES = ("runner", "components", "conf")


def called(*words: object, cwd: Path) -> str:
    """What a command prints, in a folder that knows nothing of the checkout."""
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, for a build leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / "copy" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "copy" / name)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    called(
        sys.executable, "-m", "pip", "wheel", *options, "-w", folder, folder / "copy", cwd=folder
    )
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_every_file_of_the_packages(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    files = {
        path.relative_to(ROOT)
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file()
    }
    assert {str(path) for path in files if "__pycache__" not in path.parts} <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)


@pytest.mark.slow
def test_it_runs_and_reports_from_another_folder(wheel, tmp_path):
    venv.create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    here = sysconfig.get_path("purelib")
    site = called(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path
    ).strip()
    # The packages that it needs are those of this interpreter; a path file does not follow theirs,
    # so not the checkout.
    (Path(site) / "needed.pth").write_text(f"{here}\n", encoding="utf-8")
    install = ("install", "--quiet", "--no-deps", "--no-index", wheel)
    called(sys.executable, "-m", "pip", "--python", python, *install, cwd=tmp_path)

    (work := tmp_path / "work").mkdir()
    where = called(
        python,
        "-c",
        "import runner, components; print(runner.__file__, components.__file__)",
        cwd=work,
    )
    assert where.count(site) == 2
    runner = tmp_path / "env" / "bin" / "runner"
    called(runner, "+experiment=friend_or_foe", "smoke=true", cwd=work)
    (record,) = (work / "outputs").glob("*/*/run.json")
    assert json.loads(record.read_text())["state"] == "done"
    assert "gallego2021" in (record.parent / "references.bib").read_text()
    called(
        runner, "study", "moe_evolution", "smoke=true", "--only", "inference.chains=10", cwd=work
    )
    called(runner, "report", "moe_evolution", cwd=work)
    assert list((work / "outputs").rglob("*.html"))
