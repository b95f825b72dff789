"""``runner price`` and ``runner study --budget`` through their command lines."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml

from runner.errors import ConfigError
from runner.record.usage import PHASES
from runner.study import snapshot, study
from runner.study.job_pool import JobPool
from runner.study.pricing import budget, price_command
from runner.study.pricing.price import Price
from runner.study.pricing.price_list import PriceList, price_runs
from runner.study.pricing.probes import Prober
from runner.study.snapshot import FrozenRun, Snapshot

ROWS: list[dict[str, object]] = [
    {"label": "SGLD", "model": "sgld", "preset": "", "experiment": "mog"},
    {"label": "HMC", "model": "hmc", "preset": "", "experiment": "mog", "importance": 2,
     "overrides": ["inference=hmc"]},
    {"label": "wrong", "model": "sgld", "preset": "", "experiment": "mog", "importance": 0.5,
     "overrides": ["inference.step_size=1e30"]},
]  # fmt: skip

DEFINITION = {
    "name": "small",
    "description": "Two samplers of a mixture, and one that diverges.",
    "overrides": ["smoke=true", "tracking=false", "offline=true", "figures=false"],
    "rows": ROWS,
    "tables": [{"name": "mean", "title": "Error", "columns": {"error": "error_mean"}}],
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(DEFINITION | {"rows": ROWS[:2]}))
    return file


def test_a_price_of_each_row_and_nothing_is_written(path, tmp_path, capfd):
    outputs = tmp_path / "outputs"
    words = [str(path), "--output-dir", str(outputs), "--jobs", "1", "--probe-seconds", "0.5"]
    assert price_command.main(["price", *words, "--json"]) == 0
    assert not outputs.exists()
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line[:1] == "{"]
    assert [line["row"] for line in lines] == ["SGLD", "HMC", "all"]
    for line in lines:
        assert line["source"] == "probe"
        assert 0.5 < line["cpu_seconds_low"] < line["cpu_seconds"] < line["cpu_seconds_high"] < 120
        assert 100 < line["peak_mib"] < 2000
        assert 0 < line["disk_mb"] < 50
    assert lines[2]["cpu_seconds"] == pytest.approx(
        lines[0]["cpu_seconds"] + lines[1]["cpu_seconds"], abs=0.3
    )


def test_a_run_that_fails_is_an_error_in_its_line_and_the_others_go_on(tmp_path, capfd):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(DEFINITION | {"rows": [ROWS[2], ROWS[0]]}))
    words = [str(file), "--output-dir", str(tmp_path / "o"), "--jobs", "1"]
    assert price_command.main(["price", *words, "--probe-seconds", "0.5"]) == 1
    wrong, right = capfd.readouterr().out.splitlines()[-4:-2]
    assert wrong.startswith("wrong\t1\t–")
    assert "error: " in wrong
    assert "step_size" in wrong, "the key to change"
    assert right.startswith("SGLD\t1\t")
    assert "error" not in right


def test_a_probe_that_is_killed_is_an_error_of_its_run_and_leaves_no_folder(path, tmp_path):
    definition = study.load_study(str(path))
    frozen = snapshot.take(definition, "small", [], tmp_path, [])
    prober = Prober(0.5)
    folder = Path(prober.folder.name)
    os.killpg(prober.process.pid, signal.SIGKILL)
    probe = prober.measure(frozen.runs[0])
    assert (probe.samples, probe.error) == ([], "its probe ended without a word")
    (folder / "left").mkdir()
    prober.stop()
    assert not folder.exists()


def test_a_probe_ends_with_the_process_that_asked_for_it(path, tmp_path):
    """A price that is killed leaves no probe behind."""
    run = snapshot.take(study.load_study(str(path)), "small", [], tmp_path, []).runs[0]
    prober = Prober(600.0)
    request = {"id": "1", "experiment": run.experiment, "config": run.config | {"steps": 10**9}}
    server = prober.process
    try:
        server.stdin.write(json.dumps(request | {"seconds": 600.0}) + "\n")
        server.stdin.flush()
        assert any('"total"' in line for line in server.stdout), "the fork is at work"
        server.stdin.close()
        assert server.wait(timeout=30) == 1
        with pytest.raises(ProcessLookupError):
            os.killpg(server.pid, 0)
    finally:
        prober.stop()


def test_no_probe_begins_once_its_share_of_the_budget_is_spent(path, tmp_path):
    frozen = snapshot.take(study.load_study(str(path)), "small", [], tmp_path, [])
    listed = price_runs(frozen, frozen.runs, 1, 0.5, time.monotonic() - 1.0)
    told = {price.error for price in listed.prices.values()}
    assert told == {"half of the budget was spent before its probe"}


def test_without_probes_nothing_is_known_of_runs_without_records(path, tmp_path, capsys):
    words = [str(path), "--output-dir", str(tmp_path / "outputs"), "--no-probe"]
    assert price_command.main(["price", *words]) == 1
    assert "error: no record is like it; leave --no-probe out" in capsys.readouterr().out


def test_a_run_that_is_done_is_the_price_of_its_like(path, tmp_path, capfd):
    outputs = tmp_path / "outputs"
    words = [str(path), "--output-dir", str(outputs)]
    assert study.main(["study", *words, "--only", "label=SGLD"]) == 0
    (record,) = outputs.glob("mog/*/run.json")
    usage = json.loads(record.read_text())["usage"]
    assert usage["passes"] == 1
    assert sum(usage[phase] for phase in PHASES) <= usage["cpu_seconds"] + 0.01
    assert usage["start"] > 0.5, "imports of a process of its own"
    assert price_command.main(["price", *words, "--only", "label=SGLD"]) == 0
    assert "nothing is left to run" in capfd.readouterr().out
    words += ["--as", "again", "seed=5", "--no-probe", "--json", "--only", "label=SGLD"]
    assert price_command.main(["price", *words]) == 0
    line = json.loads(capfd.readouterr().out.splitlines()[0])
    assert (line["source"], line["row"]) == ("record", "SGLD")
    assert line["cpu_seconds"] == pytest.approx(usage["cpu_seconds"], abs=0.1)
    assert line["peak_mib"] == round(usage["peak_mib"])
    size = sum(p.stat().st_size for p in record.parent.rglob("*") if p.is_file())
    assert line["disk_mb"] == pytest.approx(size / 1e6, abs=0.001)


@pytest.fixture
def launched(monkeypatch):
    """Runs that a study would start; its prices are 100 s of SGLD and 50 s of HMC."""
    started: list[str] = []

    def launch(_snapshot: Snapshot, runs: list[FrozenRun], *_: object) -> int:
        started[:] = [run.row for run in runs]
        return 0

    def price(_snapshot: Snapshot, runs: list[FrozenRun], *_: object) -> PriceList:
        seconds = {"SGLD": 100.0, "HMC": 50.0}
        return PriceList({run.signature: Price(cpu=seconds[run.row]) for run in runs})

    monkeypatch.setattr(study, "launch", launch)
    monkeypatch.setattr(budget, "price_runs", price)
    return started


def test_a_budget_takes_the_important_row_and_says_what_is_left_out(
    path, tmp_path, launched, capsys
):
    words = ["study", str(path), "--output-dir", str(tmp_path), "--jobs", "1", "--budget"]
    assert study.main([*words, "2m"]) == 0
    told = capsys.readouterr().out
    assert launched == ["HMC"]
    assert "rows that fit: 1, runs: 1, about 50 s with 1 at a time" in told
    assert "left out SGLD: about 2 min" in told
    assert f"the rest runner study {path} --output-dir {tmp_path}" in told
    assert study.main([*words, "1h"]) == 0
    assert launched == ["HMC", "SGLD"], "the most important first"
    assert "left out" not in capsys.readouterr().out


def test_a_wrong_budget_is_refused_before_anything_is_frozen(path, tmp_path):
    outputs = tmp_path / "outputs"
    words = ["study", str(path), "--output-dir", str(outputs)]
    with pytest.raises(ConfigError, match=r"--budget tonight: .* such as 30m, 8h or 2d"):
        study.main([*words, "--budget", "tonight"])
    with pytest.raises(ConfigError, match="is time on this machine, and hydra/launcher=slurm"):
        study.main([*words, "--budget", "8h", "hydra/launcher=slurm"])
    with pytest.raises(ConfigError, match="--probe-seconds 0: must be > 0"):
        price_command.main(["price", str(path), "--probe-seconds", "0"])
    assert not outputs.exists()


def test_a_pool_leaves_out_what_is_taken_from_those_that_wait(tmp_path):
    runs = [FrozenRun(name, name, {}, [], "e", name, "d", {"threads": 1}) for name in "ab"]
    definition = study.load_study  # the snapshot needs no study here
    frozen = Snapshot("s", definition, "now", "", [], runs, tmp_path)  # type: ignore[arg-type]
    ended = []
    pool = JobPool(
        frozen,
        1,
        lambda run, *_: ended.append(run.name),
        command=lambda *_: [sys.executable, "-c", ""],
    )
    pool.drop_late = lambda waiting: waiting.remove(runs[1]) if runs[1] in waiting else None
    pool.go(runs)
    assert ended == ["a"]
