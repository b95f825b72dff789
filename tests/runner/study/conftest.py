"""Studies with stand-in processes as runs."""

from __future__ import annotations

import functools
import sys

import pytest
from support.runs.made_studies import STEP_SIZES

from runner.study import snapshot, study
from runner.study.definition import StudyDefinition
from runner.study.job_pool import JobPool
from runner.study.snapshot import FrozenRun, Snapshot

# A mock runner: its behaviour depends on the name of the run.
FAKE = """
import json, os, pathlib, signal, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
def state(word, **more):
    (folder / "run.json").write_text(json.dumps({"state": word, "error": None, "finished": {"0": {}}, **more}))
def stop(*_):
    state("interrupted", error="checkpointed"); sys.exit(143)
signal.signal(signal.SIGTERM, stop)
state("running")
with (folder / "launches").open("a") as file: file.write(os.environ["RUNNER_STUDY"] + os.environ["OMP_NUM_THREADS"])
if "crash" in name and not (folder / "second").exists():
    (folder / "second").touch(); os.kill(os.getpid(), signal.SIGKILL)
if "fail" in name:
    state("failed", error="Cholesky failed"); sys.exit(1)
if "diverge" in name:
    state("diverged", error="elbo is nan"); sys.exit(1)
if "long" in name: time.sleep(60)
state("done")
"""


@pytest.fixture
def make_study(tmp_path, monkeypatch):
    """A frozen study with stand-in processes as runs."""
    (tmp_path / "fake.py").write_text(FAKE)

    def command(frozen, run):
        return [sys.executable, str(tmp_path / "fake.py"), str(frozen.folder(run)), run.name]

    monkeypatch.setattr(study, "JobPool", functools.partial(JobPool, command=command))

    def make(*names: str) -> Snapshot:
        definition = StudyDefinition.model_validate(STEP_SIZES)
        runs = [
            FrozenRun(n, "SGLD, small", {"steps": i}, [], "fake", f"s{i}", "d", {"seed": 0})
            for i, n in enumerate(names)
        ]
        frozen = Snapshot("two", definition, "now", "", [], runs, tmp_path)
        snapshot.save(frozen)
        return frozen

    return make
