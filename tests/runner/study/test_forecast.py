"""How long a study takes: from records before it, from steps on the way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from runner.study.definition import StudyDefinition
from runner.study.job_pool import RunningProcess
from runner.study.pricing import forecast
from runner.study.pricing.forecast import Forecast, makespan, read_progress, words
from runner.study.snapshot import FrozenRun, Snapshot

STUDY = StudyDefinition.model_validate({
    "name": "s", "description": "d", "rows": [{"label": "a", "model": "m", "preset": "p", "experiment": "e"}],
    "tables": [{"name": "t", "title": "t", "columns": "steps", "metric": "rmse", "better": "lower"}],
})  # fmt: skip


def frozen(signature: str, model: str = "mlp", steps: int = 100, replicates: int = 2) -> FrozenRun:
    config = {"model": {"name": model}, "steps": steps, "replicates": replicates, "smoke": False}
    return FrozenRun(signature, "a", {}, [], "e", signature, "d", config)


def record(
    output_dir: Path, run: FrozenRun, state: str = "done", seconds: float = 0.0, lines: str = ""
) -> None:
    folder = output_dir / "e" / run.signature
    folder.mkdir(parents=True)
    facts = {"state": state, "choice": {"model": run.config["model"]["name"]}, "replicates": run.config["replicates"],
             "smoke": False, "seconds": seconds, "finished": {"0": {}}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(facts))
    (folder / "config.yaml").write_text(f"seed: 0\nsteps: {run.config['steps']}\n")
    (folder / "metrics.jsonl").write_text(lines)


def line(replicate: int, step: int, seconds: float) -> str:
    facts = {
        "step": step,
        "replicate": replicate,
        "time": seconds,
        "phase": "train",
        "metrics": {"loss": 1.0},
    }
    return json.dumps(facts) + "\n"


def test_records_of_runs_like_it_scaled_by_steps_and_replicates(tmp_path):
    record(tmp_path, frozen("before", steps=50, replicates=4), seconds=20.0)  # 0.1 s for each step
    record(tmp_path, frozen("stopped"), state="interrupted", seconds=900.0)
    runs = [frozen("a"), frozen("b", steps=1000)]
    ahead = Forecast(Snapshot("s", STUDY, "now", "", [], runs, tmp_path), runs, jobs=1)
    assert ahead.seconds(runs[0]) == pytest.approx(20.0)
    assert ahead.before() == "2 runs, about 4 min with 1 at a time, from records of runs like them"
    other = [*runs, frozen("c", model="cnn")]
    ahead = Forecast(Snapshot("s", STUDY, "now", "", [], other, tmp_path), other, jobs=2)
    assert ahead.seconds(other[2]) is None
    assert ahead.before().endswith("1 without a record taken to be like the rest")
    new = Forecast(Snapshot("s", STUDY, "now", "", [], other[2:], tmp_path), other[2:], jobs=2)
    assert new.before() == "1 run; how long they take is told after their first steps"


def test_the_first_steps_tell_of_those_that_wait(tmp_path):
    runs = [frozen("a"), frozen("b")]
    record(tmp_path, runs[0], state="running", lines=line(0, 10, 1.0) + line(0, 25, 5.0))
    ahead = Forecast(Snapshot("s", STUDY, "now", "", [], runs, tmp_path), runs, jobs=1)
    going = [RunningProcess(runs[0], None, time.monotonic(), tmp_path / "log")]
    assert ahead.remaining_seconds(going) == pytest.approx(
        35.0 + 40.0
    )  # 0.2 s a step: 175 steps of one, 200 of the other
    (tmp_path / "e" / "a" / "metrics.jsonl").write_text(line(0, 100, 20.0) + line(1, 50, 10.0))
    assert ahead.remaining_seconds(going) == pytest.approx(10.0 + 40.0)
    assert Forecast(ahead.snapshot, runs, jobs=1).remaining_seconds([]) is None


def test_what_waits_takes_the_place_of_the_first_that_ends():
    assert makespan([5.0, 1.0], [3.0, 3.0], jobs=2) == 7.0
    assert makespan([], [2.0], jobs=3) == 2.0
    assert makespan([4.0], [], jobs=1) == 4.0


def test_how_long_in_words():
    assert [words(s) for s in (0.2, 89, 600, 4 * 3600)] == [
        "about 1 s",
        "about 89 s",
        "about 10 min",
        "about 4.0 h",
    ]


def test_a_line_that_is_half_written_says_nothing(tmp_path):
    assert read_progress(tmp_path) is None
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "repl')
    assert forecast.read_progress(tmp_path) is None


def test_a_record_knows_of_the_last_evaluation_and_steps_of_a_busy_machine(tmp_path):
    run, before = frozen("a"), frozen("before")
    record(tmp_path, before, seconds=60.0)
    record(tmp_path, run, state="running", lines=line(1, 99, 5.0))
    ahead = Forecast(Snapshot("s", STUDY, "now", "", [], [run], tmp_path), [run], jobs=1)
    going = [RunningProcess(run, None, time.monotonic() - 20.0, tmp_path / "log")]
    assert ahead.remaining_seconds(going) == pytest.approx(40.0, abs=1.0)
    (tmp_path / "e" / "a" / "metrics.jsonl").write_text(line(0, 50, 50.0))
    assert ahead.remaining_seconds(going) == pytest.approx(150.0)
