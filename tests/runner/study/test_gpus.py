"""GPUs are assigned to the runs of a study in turn, up to a limit for each; runs without a GPU are
not affected.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from runner.study import snapshot, study
from runner.study.definition import StudyDefinition
from runner.study.job_pool import GpuSlots, JobPool, visible
from runner.study.snapshot import FrozenRun, Snapshot

CUDA = {"device": "cuda", "threads": 1}
CPU = {"device": "cpu", "threads": 1}
DEFINITION = yaml.safe_load(
    (Path(study.__file__).parents[2] / "conf/study/moe_mog_table.yaml").read_text()
)
FAKE = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1]); folder.mkdir(parents=True)
(folder / "gpu").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "none"))
time.sleep(0.3)
(folder / "run.json").write_text(json.dumps({"state": "done", "finished": {"0": {}}, "error": None}))
"""


def test_gpu_with_the_fewest_runs_is_chosen():
    gpus = GpuSlots(2)
    gpus.names = ["3", "5"]
    taken = [gpus.take(CUDA) for _ in range(4)]
    assert [name for variables in taken for name in variables.values()] == ["3", "5", "3", "5"]
    assert not gpus.free(CUDA)
    assert gpus.free(CPU)
    assert gpus.take(CPU) == gpus.take({"device": "cuda:1"}) == {}
    gpus.give(taken[1])
    assert gpus.take(CUDA) == {"CUDA_VISIBLE_DEVICES": "5"}


def test_only_visible_gpus_are_shared(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1, GPU-abc")
    assert visible() == ["1", "GPU-abc"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert GpuSlots().take(CUDA) == {}  # the run itself reports that no GPU is available


def test_runs_of_a_study_share_the_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    (tmp_path / "fake.py").write_text(FAKE)
    configs = [CUDA, CUDA, CUDA, CPU]
    runs = [
        FrozenRun(n, "row", {}, [], "fake", f"s{n}", "d", config)
        for n, config in zip("abcd", configs, strict=True)
    ]
    frozen = Snapshot(
        "four", StudyDefinition.model_validate(DEFINITION), "now", "", [], runs, tmp_path
    )
    snapshot.save(frozen)
    at_once: list[int] = []

    def command(_, run):
        return [sys.executable, str(tmp_path / "fake.py"), str(frozen.folder(run))]

    def look(running):
        at_once.append(sum(job.run.config["device"] == "cuda" for job in running))

    JobPool(frozen, lambda *_: None, look, jobs=8, command=command).go(runs)
    devices = [(frozen.folder(run) / "gpu").read_text() for run in runs]
    assert sorted(devices[:2]) == ["0", "1"]
    assert devices[2] in ("0", "1")
    assert devices[3] == "0,1"
    assert max(at_once) == 2
