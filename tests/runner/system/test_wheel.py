"""The wheel contains all files read by the packages and works without a checkout."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from support.runs.installed import PACKAGES, ROOT, build_wheel, call, install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_wheel_holds_every_file_of_the_packages(wheel):
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
def test_wheel_runs_and_reports_from_another_folder(wheel, tmp_path):
    programs, site = install(wheel, tmp_path / "env")
    (work := tmp_path / "work").mkdir()
    where = call(
        programs / "python",
        "-c",
        "import runner, components; print(runner.__file__, components.__file__)",
        cwd=work,
    )
    assert where.count(site) == 2
    runner = programs / "runner"
    call(runner, "+experiment=friend_or_foe", "smoke=true", cwd=work)
    (record,) = (work / "outputs").glob("*/*/run.json")
    assert json.loads(record.read_text())["state"] == "done"
    assert "gallego2021" in (record.parent / "references.bib").read_text()
    call(runner, "study", "moe_evolution", "smoke=true", "--only", "inference.chains=10", cwd=work)
    call(runner, "report", "moe_evolution", cwd=work)
    assert list((work / "outputs").rglob("*.html"))
