"""Detached runs of a killed study are counted, awaited and stopped by the next study; runs of a living
study are not stopped."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from support.runs.waiting import eventually

from runner.study import find_snapshot, snapshot, study
from runner.study.definition import StudyDefinition
from runner.study.job_pool import JobPool
from runner.study.left_going import DetachedRun, left_going, runs_to_await
from runner.study.snapshot import FrozenRun, Snapshot

DEFINITION = yaml.safe_load(
    (Path(study.__file__).parents[2] / "conf/study/moe_mog_table.yaml").read_text()
)

# A mock runner: it runs until it is stopped, and records how many runs are active at the
# same time.
FAKE = """
import json, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
def state(word):
    (folder / "run.json").write_text(json.dumps({"state": word, "error": None, "finished": {"0": {}}}))
def stop(*_): state("interrupted"); sys.exit(143)
signal.signal(signal.SIGTERM, stop)
state("running")
with (folder.parent / "starts").open("a") as file: file.write(sys.argv[2])
while not (folder.parent / "end").exists(): time.sleep(0.02)
state("done")
"""
LAUNCH = """
import sys
from test_left_going import frozen, pool
pool(frozen(sys.argv[1]), 1).go(frozen(sys.argv[1]).runs)
"""


def frozen(folder) -> Snapshot:
    runs = [FrozenRun(name, "row", {}, [], "fake", f"s{name}", "d", {"seed": 0}) for name in "ab"]
    return Snapshot(
        "two", StudyDefinition.model_validate(DEFINITION), "now", "", [], runs, Path(folder)
    )


def command(frozen: Snapshot, run: FrozenRun) -> list[str]:
    return [sys.executable, str(frozen.output_dir / "fake.py"), str(frozen.folder(run)), run.name]


def pool(snapshot: Snapshot, jobs: int, on_end=lambda *ended: None) -> JobPool:
    return JobPool(snapshot, on_end, jobs=jobs, command=command)


@pytest.fixture
def living(tmp_path):
    """A study with an active first run, and its process."""
    (tmp_path / "fake.py").write_text(FAKE)
    paths = [str(Path(__file__).parent), *sys.path]
    launched = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    two = frozen(tmp_path)
    eventually(lambda: study.state(two, two.runs[0]) == "running")
    eventually((tmp_path / "fake/starts").exists)
    yield two, launched
    launched.kill()
    launched.wait()
    DetachedRun(two, two.runs[0]).kill()


@pytest.fixture
def killed_study(living):
    """A study with an active first run and a killed process."""
    two, launched = living
    launched.kill()
    launched.wait()
    return two


def stopped_at_once(snapshot: Snapshot, on_end=lambda *ended: None) -> None:
    job_pool = pool(snapshot, 1, on_end)
    job_pool.on_poll = lambda _: (
        job_pool.note_signal(signal.SIGTERM, None) if job_pool.stopped_by is None else None
    )
    job_pool.go(snapshot.runs)


def test_orphaned_run_is_counted_and_awaited(killed_study, tmp_path, monkeypatch):
    snapshot.save(killed_study)
    monkeypatch.setattr(study, "JobPool", functools.partial(JobPool, command=command))
    monkeypatch.setattr(find_snapshot, "_has_changed", lambda *_: False)
    starts = tmp_path / "fake/starts"
    signals = []

    def end() -> None:
        time.sleep(1.0)  # several polls of the processes: the second run must not have started
        signals.append(starts.read_text())
        (tmp_path / "fake/end").touch()

    ending = threading.Thread(target=end)
    ending.start()
    assert study.main(["study", "two", "--output-dir", str(tmp_path), "--jobs", "1"]) == 0
    ending.join()
    assert signals == ["a"]
    assert starts.read_text() == "ab"  # each of them once
    assert {study.state(killed_study, run) for run in killed_study.runs} == {"done"}


def test_orphaned_run_is_stopped_with_the_study(killed_study):
    (run,) = left_going(killed_study)
    assert runs_to_await(killed_study, {"sb"}) == [run], "nobody else looks after it"
    ended: list[int] = []
    stopped_at_once(killed_study, lambda job, code, *_: ended.append(code))
    assert killed_study.state(run) == "interrupted"
    assert len(ended) == 1
    assert left_going(killed_study) == []


def test_orphaned_run_is_kept_while_its_study_lives(living):
    two, launched = living
    stopped_at_once(two)
    assert launched.poll() is None
    assert [run.name for run in left_going(two)] == ["a"]
    assert two.state(two.runs[0]) == "running"
    # only b was requested: the other study waits for a
    assert runs_to_await(two, {"sb"}) == []
    assert [run.name for run in runs_to_await(two, {"sa", "sb"})] == ["a"]


def test_stopped_orphaned_run_is_resumed(killed_study, tmp_path):
    def stop() -> None:
        time.sleep(0.3)
        DetachedRun(killed_study, killed_study.runs[0]).terminate()
        time.sleep(0.3)
        (tmp_path / "fake/end").touch()

    stopping = threading.Thread(target=stop)
    stopping.start()
    pool(killed_study, 1).go(killed_study.runs[:1])
    stopping.join()
    assert killed_study.state(killed_study.runs[0]) == "done"
    assert (tmp_path / "fake/starts").read_text() == "aa"
