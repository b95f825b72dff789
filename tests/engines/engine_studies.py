"""Studies for tests of real engines: command, records, and expected results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from support.runs.configured import repeatable
from support.runs.waiting import eventually

ROOT = Path(__file__).parents[2]
# steps: seconds, and half a minute on a quiet machine
SHORT = 1000
LONG = 12000
NEVER = 10**9  # checkpoint_every: only a stopped run and the last step write a checkpoint


def study(seeds: int, steps: int) -> dict[str, Any]:
    """One method with a number of seeds, without checkpoints."""
    keys = f"smoke=true tracking=false offline=true checkpoint_every={NEVER} steps={steps}"
    return {
        "name": "engine",
        "description": "One method, several seeds.",
        "overrides": [*keys.split(), "inference.thinning=100"],
        "grid": {"seed": list(range(seeds))},
        "rows": [{"label": "one", "model": "bnn", "preset": "", "experiment": "bnn_uci"}],
        "tables": [
            {"name": "error", "title": "Error", "columns": {"error": "rmse"}, "better": "lower"}
        ],
    }


class Launched:
    """A running ``runner study`` in a folder, with its ``output``."""

    def __init__(self, folder: Path, definition: dict[str, Any], *arguments: str, **env: str):
        file = folder / "engine.yaml"
        file.write_text(yaml.safe_dump(definition))
        self.folder = folder
        self.log = folder / "printed.txt"
        command = [sys.executable, "-m", "runner.commands.cli", "study", str(file)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--output-dir", str(folder / "outputs"), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **env},
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def jobs(self) -> list[str]:
        """Numbers of the jobs, in the order of the seeds."""
        file = self.folder / "outputs/studies/engine/jobs.json"
        return [entry["job"] for entry in json.loads(file.read_text()).values()]

    @property
    def logs(self) -> str:
        """Outputs of all runs."""
        return "".join(p.read_text() for p in self.folder.glob("outputs/studies/engine/logs/*"))

    def is_training(self, runs: int) -> bool:
        """True if at least this number of runs recorded a step."""
        lines = [p.stat().st_size for p in self.folder.glob("outputs/bnn_uci/*/metrics.jsonl")]
        return sum(size > 0 for size in lines) >= runs

    def wait(self, seconds: float = 600.0, meanwhile: Callable[[], object] = lambda: None) -> int:
        """Exit code; ``meanwhile`` is called twice a second."""
        eventually(lambda: (meanwhile(), self.process.poll())[1] is not None, seconds)
        return int(self.process.returncode)


@contextmanager
def launch_study(
    folder: Path, definition: dict[str, Any], *arguments: str, **env: str
) -> Iterator[Launched]:
    """A study's command, which does not outlive the test."""
    command = Launched(folder, definition, *arguments, **env)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.terminate()
            command.process.wait(200)


def results(folder: Path) -> dict[int, Any]:
    """Results of the finished runs, by seed."""
    facts = [json.loads(p.read_text()) for p in folder.glob("outputs/bnn_uci/*/run.json")]
    return {f["seed"]: repeatable(f["result"]) for f in facts if f["state"] == "done"}


def longest_seconds(folder: Path) -> float:
    """Seconds of the longest run."""
    return max(json.loads(p.read_text())["seconds"] for p in folder.glob("outputs/*/*/run.json"))


def run_undisturbed(folder: Path, seeds: int, steps: int) -> dict[int, Any]:
    """Results of the same study in local processes."""
    folder.mkdir()
    with launch_study(folder, study(seeds, steps), "--jobs", "2") as command:
        assert command.wait() == 0, command.output
    return results(folder)
