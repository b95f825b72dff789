"""Times and prices from records of earlier runs, and forecasts of a study's remaining time."""

from __future__ import annotations

import json
import time

import pytest
import yaml
from support.runs.made_studies import make_run, make_snapshot

from runner.record.lines import newest_line
from runner.record.usage import PHASES
from runner.study.executor import RunningProcess
from runner.study.pricing.study_records import (
    Forecast,
    StudyRecords,
    cost_key,
    format_seconds,
    makespan,
)

USAGE = dict.fromkeys(PHASES, 0.0) | {
    "cpu_seconds": 50.0,
    "peak_mib": 700.0,
    "passes": 2,
    "start": 2.0,
    "training": 40.0,
    "files": 6.0,
}
CHOICE = {"dataset": "digits", "model": "mlp", "inference": "map"}
FACTS = {
    "state": "done",
    "experiment": "e",
    "started": "",
    "result": {},
    "seed": 0,
    "data": "digits",
    "choice": CHOICE,
    "replicates": 2,
    "smoke": False,
    "seconds": 60.0,
    "finished": {"0": {}},
    "vectorised": False,
}


def write_record(output_dir, run, lines="", **facts):
    folder = output_dir / "e" / run.signature
    folder.mkdir(parents=True)
    facts = FACTS | {"signature": run.signature, "replicates": run.config["replicates"]} | facts
    (folder / "run.json").write_text(json.dumps(facts))
    (folder / "config.yaml").write_text(yaml.safe_dump(run.config))
    (folder / "metrics.jsonl").write_text(lines)


def to_line(replicate: int, step: int, seconds: float) -> str:
    line = {"step": step, "replicate": replicate, "time": seconds, "phase": "train", "metrics": {}}
    return json.dumps(line) + "\n"


def run_of(name, steps=100, replicates=2, **config):
    return make_run(name, steps=steps, replicates=replicates, **config)


def forecast(output_dir, *runs, jobs=1):
    return Forecast(make_snapshot(output_dir, *runs), runs, jobs)


def test_price_scales_equal_records_by_replicates(tmp_path):
    write_record(tmp_path, make_run("before", seed=3, replicates=2), usage=USAGE)
    write_record(tmp_path, make_run("other", seed=3, steps=2000, replicates=2), usage=USAGE)
    run = make_run("now", replicates=6)
    longer = make_run("longer", steps=3000)
    records = StudyRecords(make_snapshot(tmp_path), [run])
    price = records.price(run)
    assert price is not None
    assert price.cpu == pytest.approx(50.0 + 2 * 40.0), "imports and figures come once"
    assert (price.mib, price.source) == (700.0, "record")
    assert records.price(longer) is None
    assert records.rough_price(longer).cpu == pytest.approx(3000 * (60 / 2000 + 60 / 4000) / 2)


@pytest.mark.parametrize(
    ("change", "replicates"),
    [
        ({"usage": USAGE | {"passes": 1}}, 2),
        ({"state": "running"}, 2),
        ({"vectorised": True}, 4),
        ({"usage": None}, 4),
    ],
)
def test_price_requires_a_complete_record(tmp_path, change, replicates):
    write_record(tmp_path, make_run("before", seed=3, replicates=2), **{"usage": USAGE} | change)
    run = make_run("now", replicates=replicates)
    assert StudyRecords(make_snapshot(tmp_path), [run]).price(run) is None


def test_seed_and_replicates_are_not_in_the_cost_key():
    changes = ({}, {"seed": 7}, {"replicates": 9}, {"steps": 5}, {"figures": False})
    keys = [cost_key(make_run("a", **change).config, "d") for change in changes]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3


def test_forecast_scales_similar_records(tmp_path):
    write_record(tmp_path, run_of("before", steps=50, replicates=4), seconds=20.0)
    write_record(tmp_path, run_of("stopped"), state="interrupted", seconds=900.0)
    runs = [run_of("a"), run_of("b", steps=1000)]
    other = run_of("c", model={"name": "cnn"})
    both = forecast(tmp_path, *runs)
    assert both.records.seconds(runs[0]) == pytest.approx(20.0), "0.1 s a step"
    assert both.before() == "2 runs, about 4 min with 1 in parallel, from records of similar runs"
    three = forecast(tmp_path, *runs, other, jobs=2)
    assert three.records.seconds(other) is None
    assert three.before().endswith("assuming that the 1 without a record take as long")
    new = forecast(tmp_path, other)
    assert new.before() == "1 run; time estimate after the first steps"
    assert new.remaining_seconds([]) is None


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (to_line(0, 10, 1.0) + to_line(0, 25, 5.0), 35.0 + 40.0),  # 0.2 s per step
        (to_line(0, 100, 20.0) + to_line(1, 50, 10.0), 10.0 + 40.0),
    ],
)
def test_steps_of_a_run_forecast_waiting_runs(tmp_path, lines, seconds):
    runs = [run_of("a"), run_of("b")]
    write_record(tmp_path, runs[0], lines, state="running")
    active = [RunningProcess(runs[0], None, time.monotonic(), tmp_path / "log")]
    assert forecast(tmp_path, *runs).remaining_seconds(active) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (to_line(1, 99, 5.0), 40.0),  # the record includes the last evaluation
        (to_line(0, 50, 50.0), 150.0),  # this machine is slower than the record's
    ],
)
def test_forecast_uses_the_slower_of_record_and_steps(tmp_path, line, seconds):
    run = run_of("a")
    write_record(tmp_path, run_of("before"), seconds=60.0)
    write_record(tmp_path, run, line, state="running")
    active = [RunningProcess(run, None, time.monotonic() - 20.0, tmp_path / "log")]
    remaining = forecast(tmp_path, run).remaining_seconds(active)
    assert remaining == pytest.approx(seconds, abs=1.0)


def test_finished_run_forecasts_waiting_runs(tmp_path):
    runs = [run_of("a"), run_of("b", steps=50)]
    study = forecast(tmp_path, *runs)
    write_record(tmp_path, runs[0], seconds=40.0)
    active = [RunningProcess(runs[1], None, time.monotonic(), tmp_path / "log")]
    assert study.remaining_seconds(active) is None
    study.record_end(runs[0])
    assert study.remaining_seconds(active) == pytest.approx(20.0, abs=1.0)


@pytest.mark.parametrize(
    ("busy", "waiting", "jobs", "end"),
    [([5.0, 1.0], [3.0, 3.0], 2, 7.0), ([], [2.0], 3, 2.0), ([4.0], [], 1, 4.0)],
)
def test_waiting_runs_take_the_first_free_slot(busy, waiting, jobs, end):
    assert makespan(busy, waiting, jobs) == end


def test_durations_have_a_readable_unit():
    texts = ["1 s", "89 s", "10 min", "4.0 h"]
    assert [format_seconds(s) for s in (0.2, 89, 600, 4 * 3600)] == texts


def test_incomplete_line_is_no_progress(tmp_path):
    assert newest_line(tmp_path) is None
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "repl')
    assert newest_line(tmp_path) is None
