"""``make run``: its output for a new user, and the checks of the main job."""

import subprocess
from pathlib import Path

import pytest
import yaml

from components.metrics.limits import BOUND_LINES

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("uv", ["", "uv"])
def test_setup_announces_duration_and_torch_download(tmp_path, uv):
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    # it may run inside `make test`
    command = ["make", "--dry-run", "--no-print-directory", f"UV={uv}", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("echo 'Setting up .venv: ")
    assert "minutes" in lines[0]
    (torch,) = (line for line in lines if "torch==" in line)
    assert "--quiet" not in torch
    assert torch.startswith("uv pip install" if uv else ".venv/bin/python -m pip install")
    assert sum("--no-deps --require-hashes -r requirements.lock" in line for line in lines) == 1
    (project_line,) = (line for line in lines if line.endswith("-e ."))
    # asterisks in the output of setuptools
    assert project_line.startswith("PYTHONWARNINGS='ignore:Editable installation'")
    assert lines[-1].endswith("runner +experiment=sarcos_mdgp")


def test_main_job_records_enough_bounds_for_check():
    path = ROOT / "conf" / "experiment" / "sarcos_mdgp.yaml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert job["steps"] // job["record_every"] >= 10 * BOUND_LINES
