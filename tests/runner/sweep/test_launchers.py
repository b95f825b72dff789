"""Launchers: the same sweep sequentially, in parallel processes, through submitit, and on a local Ray."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from support.runs.configured import repeatable


@pytest.mark.parametrize(
    ("launcher", "target"),
    [
        ("local", "BasicLauncher"),
        ("basic", "BasicLauncher"),
        ("joblib", "JoblibLauncher"),
        ("slurm", "SlurmLauncher"),
        ("slurm_local", "LocalLauncher"),
    ],
)
def test_launchers_are_chosen_by_name(launcher, target):
    with initialize_config_module("conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"hydra/launcher={launcher}"], return_hydra_config=True)
    assert cfg.hydra.launcher._target_.endswith(target)


def test_preempted_slurm_job_is_resubmitted():
    with initialize_config_module("conf", version_base="1.3"):
        cfg = compose("config", overrides=["hydra/launcher=slurm"], return_hydra_config=True)
    assert cfg.hydra.launcher.max_num_timeout > 0  # its run resumes from the checkpoint
    assert cfg.hydra.launcher.cpus_per_task == 1


def run_sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A finished ``runner -m +experiment=mog smoke=true tracking=false …``."""
    command = [sys.executable, "-m", "runner.commands.cli", "-m", "+experiment=mog", "smoke=true"]
    return subprocess.run([*command, "tracking=false", *arguments], capture_output=True, text=True)


def sweep(output_dir: Path, *arguments: str) -> list[dict]:
    """Records of ``runner -m +experiment=mog smoke=true seed=0,1 …``."""
    done = run_sweep("seed=0,1", f"output_dir={output_dir}", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = [json.loads(path.read_text()) for path in output_dir.glob("mog/*/run.json")]
    return sorted(facts, key=lambda f: f["seed"])


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "slurm_local", "ray"])
def test_every_launcher_gives_the_same_numbers(tmp_path, launcher):
    if launcher == "ray" and importlib.util.find_spec("hydra_plugins.hydra_ray_launcher") is None:
        pytest.skip("hydra-ray-launcher is an optional extra: pip install 'bayes-runner[ray]'")
    expected = sweep(tmp_path / "one after the other")
    table = sweep(tmp_path / launcher, f"hydra/launcher={launcher}")
    assert [f["state"] for f in table] == ["done", "done"]
    assert [repeatable(f["result"]) for f in table] == [repeatable(f["result"]) for f in expected]
    assert {f["threads"] for f in table} == {1}


@pytest.mark.slow
def test_failed_job_does_not_stop_the_others(tmp_path):
    """In parallel processes a failure is returned as a message and does not break the pool."""
    keys = ("inference.thinning=10,-1,5", "hydra/launcher=joblib")
    done = run_sweep(f"output_dir={tmp_path}", *keys)
    assert done.returncode == 1
    assert "inference.thinning=-1: out of range; must be > 0" in done.stderr + done.stdout
    assert "1 of the sweep's jobs failed" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.glob("mog/*/run.json"))) == 2
