"""Runs of a study on engines, from launch to record: submitted, requeued, resumed, gathered."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.runs.waiting import eventually

DEFINITION = {
    "name": "two",
    "description": "One method, twice.",
    "overrides": ["smoke=true", "tracking=false", "offline=true", "checkpoint_every=50"],
    "grid": {"seed": [0, 1]},
    "rows": [{"label": "one", "model": "bnn", "preset": "", "experiment": "bnn_uci"}],
    "tables": [
        {"name": "error", "title": "Error", "columns": {"error": "rmse"}, "better": "lower"}
    ],
}
LONG = DEFINITION | {"overrides": [*DEFINITION["overrides"], "steps=6000"]}


def launch(tmp_path: Path, *arguments: str, definition=DEFINITION) -> subprocess.Popen:
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(definition))
    command = [sys.executable, "-m", "runner.commands.cli", "study", str(file)]
    command += ["--output-dir", str(tmp_path / "outputs"), *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, **streams, start_new_session=True)


def facts(tmp_path: Path, outputs: str = "outputs") -> list[dict]:
    facts_found = [
        json.loads(path.read_text()) for path in (tmp_path / outputs).glob("*/*/run.json")
    ]
    return sorted(facts_found, key=lambda f: f["seed"])


def find_checkpointed(tmp_path: Path) -> set[Path]:
    """Folders of runs with a checkpoint."""
    pattern = "bnn_uci/*/checkpoints/*.safetensors"
    return {path.parent for path in (tmp_path / "outputs").glob(pattern)}


SLURM = {
    # An array of jobs as processes of this machine, each with the variables that Slurm sets.
    "sbatch": """#!/bin/bash
state=$(dirname "$0"); cp "$1" "$state/script"; last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$1")
export SLURM_ARRAY_JOB_ID=77 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
for i in $(seq 0 "$last"); do
  echo PENDING > "$state/77_$i"
  (export SLURM_JOB_ID=$((77 + i)) SLURM_ARRAY_TASK_ID=$i; echo RUNNING > "$state/77_$i"
   bash "$state/script" > /dev/null 2>&1; echo COMPLETED > "$state/77_$i") > /dev/null 2>&1 &
done
echo Submitted batch job 77
""",
    "srun": """#!/bin/bash
while [[ "$1" == -* ]]; do [[ "$1" == --*=* || "$1" == --unbuffered ]] && shift || shift 2; done
exec "$@"
""",
    "squeue": """#!/bin/bash
for f in $(dirname "$0")/77_*; do echo "$(basename $f)|$(cat $f)"; done
""",
}


@pytest.mark.slow
def test_runs_are_a_slurm_array(tmp_path, monkeypatch):
    """Submitit with stand-ins for Slurm's commands: one array, with states queried by ``--status``."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in SLURM.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    keys = ("hydra.launcher.partition=gpu", "hydra.launcher.array_parallelism=1")
    command = launch(tmp_path, "hydra/launcher=slurm", *keys)
    jobs_file = tmp_path / "outputs/studies/two/jobs.json"
    eventually(lambda: list(folder.glob("77_*")) and jobs_file.exists())
    asked = launch(tmp_path, "--status")
    assert asked.wait(120) == 0
    shown = asked.stdout.read()
    assert "slurm 77_0" in " ".join(shown.split())
    assert command.wait(400) == 0, command.stdout.read()
    assert [f["state"] for f in facts(tmp_path)] == ["done", "done"]
    script = (folder / "script").read_text().splitlines()
    wanted = {"--array=0-1%1", "--partition=gpu", "--signal=USR2@120"}
    assert {f"#SBATCH {word}" for word in wanted} <= set(script)
    assert jobs_of(jobs_file) == ["77_0", "77_1"]


def jobs_of(file: Path) -> list[str]:
    return sorted(entry["job"] for entry in json.loads(file.read_text()).values())


def child(process: int) -> int:
    """First child of a process."""
    children = eventually(
        lambda: Path(f"/proc/{process}/task/{process}/children").read_text().split()
    )
    return int(children[0])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
def test_preempted_job_is_requeued_and_resumes(tmp_path):
    long = LONG | {"grid": {"seed": [0]}}
    command = launch(tmp_path, "hydra/launcher=slurm_local", definition=long)
    logs = tmp_path / "outputs/studies/two/logs"
    jobs = tmp_path / "outputs/studies/two/jobs.json"
    (number,) = eventually(lambda: jobs.exists() and jobs_of(jobs))
    eventually(lambda: find_checkpointed(tmp_path))
    os.kill(child(int(number)), signal.SIGUSR2)  # as Slurm does before it takes the node away
    assert command.wait(400) == 0, command.stdout.read()
    (facts_found,) = facts(tmp_path)
    assert facts_found["state"] == "done"
    assert "resumed at step" in next(logs.glob("*.log")).read_text()


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="Ray is an extra: pip install 'bayes-runner[ray]'",
)
def test_run_of_a_dead_ray_node_resumes_elsewhere(tmp_path):
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    other = cluster.add_node(num_cpus=1)
    try:
        cluster.wait_for_nodes()
        address = f"+hydra.launcher.ray.init.address={cluster.address}"
        command = launch(tmp_path, "hydra/launcher=ray", address, definition=LONG)
        eventually(lambda: len(find_checkpointed(tmp_path)) == 2)
        cluster.remove_node(other, allow_graceful=False)
        assert command.wait(500) == 0, command.stdout.read()
        facts_found = facts(tmp_path)
        assert [f["state"] for f in facts_found] == ["done", "done"]
        logs = "".join(p.read_text() for p in (tmp_path / "outputs/studies/two/logs").glob("*.log"))
        assert "resumed at step" in logs
    finally:
        cluster.shutdown()
