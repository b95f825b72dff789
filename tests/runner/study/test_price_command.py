"""``runner price`` and ``runner study --budget`` through their command lines."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from support.runs.json_output import read_objects
from support.runs.made_records import make_record
from support.runs.made_studies import make_run, make_snapshot

from components.memory import GIB
from components.models.shallow_gp.exact_cost import largest_exact
from runner.errors import ConfigError, RunFailure
from runner.record.usage import PHASES
from runner.study import snapshot, study
from runner.study.definition import load_study
from runner.study.job_pool import JobPool
from runner.study.pricing import budget, price_command, probes
from runner.study.pricing.price import Price
from runner.study.pricing.price_list import price_runs
from runner.study.snapshot import FrozenRun, Snapshot

ROWS: list[dict[str, object]] = [
    {"label": "SGLD", "model": "sgld", "preset": "", "experiment": "mog"},
    {
        "label": "HMC",
        "model": "hmc",
        "preset": "",
        "experiment": "mog",
        "importance": 2,
        "overrides": ["inference=hmc"],
    },
    {
        "label": "wrong",
        "model": "sgld",
        "preset": "",
        "experiment": "mog",
        "importance": 0.5,
        "overrides": ["inference.step_size=1e30"],
    },
]

DEFINITION = {
    "name": "small",
    "description": "Two samplers of a mixture, and one that diverges.",
    "overrides": ["smoke=true", "tracking=false", "offline=true", "figures=false"],
    "rows": ROWS,
    "tables": [{"name": "mean", "title": "Error", "columns": {"error": "error_mean"}}],
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(DEFINITION | {"rows": ROWS[:2]}))
    return file


@pytest.fixture
def frozen(path, tmp_path):
    return snapshot.take(load_study(str(path)), "small", [], tmp_path, [])


def price(path, outputs, *words):
    return price_command.main(["price", str(path), "--output-dir", str(outputs), *words])


def test_rows_and_errors_are_priced_without_writing(path, tmp_path, capfd):
    path.write_text(yaml.safe_dump(DEFINITION))
    outputs = tmp_path / "outputs"
    assert price(path, outputs, "--jobs", "1", "--probe-seconds", "0.5", "--json") == 1
    assert not outputs.exists()
    lines = {line["row"]: line for line in read_objects("price", capfd.readouterr().out)}
    assert list(lines) == ["SGLD", "HMC", "wrong", "all"]
    wrong = lines.pop("wrong")
    assert (wrong["unpriced"], wrong["source"]) == (1, "")
    assert "step_size" in wrong["error"], "the key to change"
    for line in lines.values():
        assert line["source"] == "probe"
        assert 0.5 < line["cpu_seconds_low"] < line["cpu_seconds"] < line["cpu_seconds_high"] < 120
        assert 100 < line["peak_mib"] < 2000
        assert 0 < line["disk_mb"] < 50
    parts = lines["SGLD"]["cpu_seconds"] + lines["HMC"]["cpu_seconds"]
    assert lines["all"]["cpu_seconds"] == pytest.approx(parts, abs=0.3)


def test_late_probe_is_stopped(frozen, monkeypatch):
    monkeypatch.setattr(probes, "last_line", lambda log: "")
    busy = [
        sys.executable,
        "-c",
        "import resource, time\nresource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass",
    ]
    monkeypatch.setattr(probes, "command", lambda *_: busy)
    prices = probes.measure_runs(frozen, frozen.runs, 2, 0.5).values()
    why = "took more than 33 s; raise --probe-seconds"
    assert [price.error for price in prices] == [why, why]


def test_failed_probe_is_priced_by_earlier_miniatures(frozen, tmp_path):
    config = frozen.runs[0].config
    usage = dict.fromkeys(PHASES, 0.0) | {"cpu_seconds": 10.0, "peak_mib": 300.0, "training": 8.0}
    folder = make_record(tmp_path, usage=usage | {"passes": 1})
    small = config | {"steps": config["steps"] // 10, "replicates": 1}
    (folder / "config.yaml").write_text(yaml.safe_dump(small))
    price = probes.price_probe(frozen.runs[0], tmp_path, "no memory")
    assert price.cpu == pytest.approx(2.0 + 80.0 * config["replicates"], rel=0.1)
    assert (price.spread, price.note) == (3.0, "probe: no memory")


def test_sigterm_ends_the_probes_and_their_folder(frozen, monkeypatch):
    folders: list[Path] = []
    asleep = [sys.executable, "-c", "import time; time.sleep(600)"]

    def start(snapshot: Snapshot, *_: object) -> list[str]:
        folders.append(snapshot.output_dir)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return asleep

    monkeypatch.setattr(probes, "command", start)
    with pytest.raises(RunFailure, match=r"interrupted .*; no run was started"):
        probes.measure_runs(frozen, frozen.runs, 1, 600.0)
    assert len(folders) == 1, "the second probe never began"
    assert not folders[0].exists()


def test_probes_stop_when_their_share_of_the_budget_is_spent(frozen):
    listed = price_runs(frozen, frozen.runs, 1, 0.5, time.monotonic() - 1.0)
    errors = {price.error for price in listed.values()}
    assert errors == {"half of the budget was used before its probe"}


def test_runs_without_records_have_no_price_without_probes(path, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(price_command, "free_memory", lambda: 24 * GIB)
    assert price(path, tmp_path / "outputs", "--no-probe") == 1
    printed = capsys.readouterr().out
    assert "error: no record of a similar run; remove --no-probe" in printed
    labels = f"{largest_exact(24 * GIB):,}"
    assert f"memory   24.0 GiB available, an exact Gaussian process of {labels} labels" in printed


def test_finished_run_prices_similar_ones(path, tmp_path, capfd):
    outputs = tmp_path / "outputs"
    only = ("--only", "label=SGLD")
    assert study.main(["study", str(path), "--output-dir", str(outputs), *only]) == 0
    (record,) = outputs.glob("mog/*/run.json")
    usage = json.loads(record.read_text())["usage"]
    assert usage["passes"] == 1
    assert sum(usage[phase] for phase in PHASES) <= usage["cpu_seconds"] + 0.01
    assert usage["start"] < 0.5, "a forked process imports little"
    assert price(path, outputs, *only) == 0
    assert "all runs are done" in capfd.readouterr().out
    assert price(path, outputs, *only, "--as", "again", "seed=5", "--no-probe", "--json") == 0
    line = json.loads(capfd.readouterr().out.splitlines()[0])
    assert (line["source"], line["row"]) == ("record", "SGLD")
    assert line["cpu_seconds"] == pytest.approx(usage["cpu_seconds"], abs=0.1)
    assert line["peak_mib"] == round(usage["peak_mib"])
    size = sum(p.stat().st_size for p in record.parent.rglob("*") if p.is_file())
    assert line["disk_mb"] == pytest.approx(size / 1e6, abs=0.001)


@pytest.fixture
def launched_runs(monkeypatch):
    """Runs that a study starts, with prices of 100 s for SGLD and 50 s for HMC."""
    started: list[str] = []

    def launch(_snapshot: Snapshot, runs: list[FrozenRun], *_: object) -> int:
        started[:] = [run.row for run in runs]
        return 0

    def price(_snapshot: Snapshot, runs: list[FrozenRun], *_: object) -> dict[str, Price]:
        seconds = {"SGLD": 100.0, "HMC": 50.0}
        return {run.signature: Price(cpu=seconds[run.row]) for run in runs}

    monkeypatch.setattr(study, "launch", launch)
    monkeypatch.setattr(budget, "price_runs", price)
    return started


def test_budget_prefers_important_rows_and_lists_the_others(path, tmp_path, launched_runs, capsys):
    words = ["study", str(path), "--output-dir", str(tmp_path), "--jobs", "1", "--budget"]
    assert study.main([*words, "2m"]) == 0
    printed = capsys.readouterr().out
    assert launched_runs == ["HMC"]
    assert "rows that fit: 1, runs: 1, about 50 s with 1 in parallel" in printed
    assert "skipped  SGLD: about 2 min" in printed
    assert f"the rest runner study {path} --output-dir {tmp_path}" in printed
    assert study.main([*words, "1h"]) == 0
    assert launched_runs == ["HMC", "SGLD"], "the most important first"
    assert "skipped" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("study --budget tonight", r"--budget tonight: .* such as 30m, 8h or 2d"),
        (
            "study --budget 8h hydra/launcher=slurm",
            "supports only this machine, not hydra/launcher=slurm",
        ),
        ("price --probe-seconds 0", "--probe-seconds 0: must be > 0"),
        (
            "price hydra/launcher=slurm",
            "price: supports only this machine; remove hydra/launcher=slurm",
        ),
    ],
)
def test_invalid_budget_is_refused_before_freezing(path, tmp_path, words, message):
    command, *rest = words.split()
    main = {"study": study.main, "price": price_command.main}[command]
    with pytest.raises(ConfigError, match=message):
        main([command, str(path), "--output-dir", str(tmp_path / "outputs"), *rest])
    assert not (tmp_path / "outputs").exists()


def test_pool_skips_runs_taken_from_the_waiting_ones(tmp_path):
    runs = [make_run(name, threads=1) for name in "ab"]
    ended = []
    pool = JobPool(
        make_snapshot(tmp_path, *runs),
        lambda job, *_: ended.append(job.run.name),
        command=lambda *_: [sys.executable, "-c", ""],
    )
    pool.drop_late = lambda waiting: waiting.remove(runs[1]) if runs[1] in waiting else None
    pool.go(runs)
    assert ended == ["a"]
