"""``runner arena verify`` rejects a pack with edited scores."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from argparse import Namespace
from pathlib import Path

import pytest
from support.runs.arena_suites import TOY, toy, use_suite
from support.runs.configured import defaults
from support.runs.made_records import make_record

from runner.arena import command, packed, rows, verify
from runner.arena.frozen import refuse_frozen
from runner.arena.rows import make_row
from runner.arena.suite import load_suite
from runner.catalogue import new
from runner.errors import ConfigError
from runner.report.exchange import archive
from runner.report.exchange.opened import MANIFEST, open_archive
from runner.study import snapshot as snapshots
from runner.study.definition import StudyDefinition
from runner.study.snapshot import FrozenRun, Snapshot

ROWS = [{"label": name, "model": name, "preset": "", "experiment": "made"} for name in ("A", "B")]
TABLES = [{"name": "t", "title": "", "columns": {"error": "rmse"}}]
STUDY = StudyDefinition(name="small", description="two rows", rows=ROWS, tables=TABLES)
RECORD = "made/aaaaaaaaaaaa/run.json"
LINES = "made/aaaaaaaaaaaa/metrics.jsonl"
TABLE = "report/small_replicates.csv"


@pytest.fixture
def pack(tmp_path):
    """A study of two runs with two replicates each."""
    runs = []
    for row in ("a", "b"):
        runs.append(FrozenRun(row.upper(), row.upper(), {}, [], "made", row * 12, "made-data"))
        make_record(tmp_path / "outputs", row * 12, replicates=2)
    snapshot = Snapshot("small", STUDY, "2026-11-01", "c" * 40, [], runs, tmp_path / "outputs")
    snapshots.save(snapshot)
    archive.pack(snapshot, tmp_path / "small.zip")
    return tmp_path / "small.zip"


def change(pack: Path, **texts: tuple[str, str]) -> None:
    """Replace text in files of a pack, and update its checksums."""
    with zipfile.ZipFile(pack) as packed:
        files = {name: packed.read(name) for name in packed.namelist() if name != MANIFEST}
        manifest = json.loads(packed.read(MANIFEST))
    for name, (old, after) in texts.items():
        assert old in files[name].decode()
        files[name] = files[name].decode().replace(old, after).encode()
    manifest["files"] = {name: hashlib.sha256(file).hexdigest() for name, file in files.items()}
    with zipfile.ZipFile(pack, "w") as packed:
        for name, file in files.items():
            packed.writestr(name, file)
        packed.writestr(MANIFEST, json.dumps(manifest))


def run_verify(pack: Path, monkeypatch, **given) -> int:
    """Exit code if the result of each cell is 1/6 + replicate."""
    monkeypatch.setattr(
        verify,
        "compute_again",
        lambda cell, snapshot, plugins: ({"rmse": 1.0 / 6 + cell.replicate}, ""),
    )
    keys = {"file": str(pack), "cells": "all", "seed": 0, "trust": False, "tolerance": 1e-6}
    with open_archive(str(pack)) as opened:
        return verify.verify_opened(opened, Namespace(**keys | {"data_dir": "data"} | given))


def test_unchanged_pack_agrees(pack, monkeypatch, capsys):
    assert run_verify(pack, monkeypatch) == 0
    output = capsys.readouterr().out
    assert "4 of 4 cells agree (of 4; seed 0)" in output
    assert run_verify(pack, monkeypatch, cells="1") == 0
    assert "would go undetected with probability 0.75" in capsys.readouterr().out


IN_RECORD = {RECORD: ("0.16666666666666666", "0.1")}
IN_LINES = {LINES: ("0.16666666666666666", "0.1")}
IN_TABLE = {TABLE: ("A,error,made-data,0,0,0.16666666666666666", "A,error,made-data,0,0,0.1")}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (IN_TABLE, "1 lines are not in its records"),
        (IN_RECORD | IN_TABLE, "A, replicate 0: record: rmse is 0.1 in the record, 0.166667 here"),
        (
            IN_RECORD | IN_LINES | IN_TABLE,
            "differs  A, replicate 0  rmse is 0.1 in the record, 0.166667 here",
        ),
    ],
    ids=["table", "record", "everywhere"],
)
def test_single_changed_score_is_detected(pack, monkeypatch, capsys, files, message):
    change(pack, **files)
    assert run_verify(pack, monkeypatch) == 1
    shown = capsys.readouterr()
    assert message in shown.out + shown.err


SUITE = {
    "name": "tiny",
    "problems": {"gauss": ["dataset=gaussian"]},
    "budgets": {"small": {"densities": 4000}},
    "rows": [
        {"label": "MALA", "model": "target_density", "preset": "", "overrides": ["inference=mala"]}
    ],
    "tables": [{"name": "e", "title": "e", "columns": "problem", "metric": "error_sd"}],
}


@pytest.fixture
def suite(tmp_path):
    with use_suite(tmp_path, TOY | SUITE | {"overrides": ["model=target_density"]}):
        yield load_suite("tiny")


@pytest.mark.parametrize(
    ("word", "group"),
    [
        ("dataset.dim=1", "dataset"),
        ("+seed=3", "seed"),
        ("attacker=huber", "attacker"),
        ("budget.densities=9", "budget"),
        ("dataset.batch_size=7", ""),
        ("inference.chains=3", ""),
    ],
)
def test_row_cannot_set_frozen_keys(suite, word, group):
    row = make_row(["inference=mala", word], None)
    if not group:
        refuse_frozen(suite, row)
        return
    with pytest.raises(ConfigError, match=re.escape(f"{word}: {group} is frozen")):
        refuse_frozen(suite, row)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({}, []),
        ({"replicates": 1}, ["replicates"]),
        ({"budget": {"densities": 9000, "gradients": None}}, ["budget"]),
        ({"budget": None}, ["budget"]),
        ({"dataset": {"name": "gaussian", "dim": 1}}, ["dataset"]),
        ({"seed": 3}, ["seed"]),
        ({"validation": 0.5}, ["validation"]),
    ],
)
def test_pack_with_other_rules_deviates(suite, tmp_path, change, keys):
    study = suite.to_study(list(suite.rows))
    budget = {"densities": 4000, "gradients": None}
    config = {"dataset": defaults("dataset", "gaussian"), "replicates": 2, "budget": budget}
    config |= {"seed": 0, "smoke": False, "validation": None}
    run = FrozenRun("MALA", "MALA", {"problem": "gauss"}, [], "e", "s", "d", config | change)
    snapshot = Snapshot("arena.tiny.small.MALA", study, "", "", [], [run], tmp_path)
    expected = [f"MALA: {key}: differs from suite tiny in this installation" for key in keys]
    assert list(packed.list_deviations(snapshot)) == expected


def test_times_are_ignored_and_missing_scores_reported():
    times = {"milliseconds_per_step": 3.0, "cost/cpu_seconds": 1.0, "variance_seconds/a": 2.0}
    old_scores = {"rmse": [1.0, float("nan")], "lost": 1.0} | times
    after = {"rmse": [1.0 + 1e-9, float("nan")], "new": 2.0} | dict.fromkeys(times, 4.0)
    assert list(packed.list_differences(old_scores, after, 1e-6)) == [
        "lost is not reproduced",
        "new is not in the record",
    ]
    assert list(packed.list_differences({"rmse": 1.0}, {"rmse": 1.0 + 1e-9}, 0.0)) == [
        "rmse is 1 in the record, 1 here"
    ]


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_invalid_count_of_cells_is_refused(pack, monkeypatch, count):
    with pytest.raises(ConfigError, match="give a number from 1, or all"):
        run_verify(pack, monkeypatch, cells=count)


@pytest.mark.slow
def test_trusted_plugin_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert new.main(["new", "inference", "walk"]) == 0
    row = "+experiment=mog, inference=walk, 'plugins=[walk]', steps=60, inference.chains=4"
    Path("conf/study").mkdir()
    Path("conf/study/mine.yaml").write_text(
        "{name: mine, description: d, replicates: 2, rows: [{label: walk, model: m, preset: '', overrides: "
        f"[{row}]}}], tables: [{{name: t, title: t, columns: {{sd: error_sd}}}}]}}"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])}

    def runner(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runner.commands.cli", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    words = ("--config-dir", "conf", "--plugin", "walk", "tracking=false")
    assert runner("study", "mine", *words).returncode == 0
    assert runner("archive", "mine", "--config-dir", "conf", "--to", "p.zip").returncode == 0
    Path("walk.py").unlink()  # uses the plug-in of the pack
    given = ["p.zip", "--cells", "1"]
    with pytest.raises(ConfigError, match=r"\(walk.py in plugins/\): .*--trust"):
        command.main(["arena", "verify", *given])
    assert command.main(["arena", "verify", *given, "--trust"]) == 0
    assert "1 of 1 cells agree (of 2" in capsys.readouterr().out


def test_method_that_reads_the_truth_is_refused(tmp_path, monkeypatch):
    run = FrozenRun("r", "r", {"problem": "p"}, [], config={"inference": {"name": "pac_bayes"}})
    snapshot = Snapshot("s", STUDY, "", "", [], [run], tmp_path)
    monkeypatch.setattr(rows, "plan", lambda *_: [])
    monkeypatch.setattr(rows.snapshots, "take", lambda *_: snapshot)
    with pytest.raises(
        ConfigError, match=r"inference=pac_bayes reads the truth, .*; remove reads_truth"
    ):
        rows.freeze(toy(), "", rows.make_row([], None), tmp_path, [])
