"""Records and checkpoints of before the states were typed open, resume to the same numbers, and
report."""

from __future__ import annotations

import csv
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from runner.commands import resume
from runner.commands.app import attempt
from runner.record.facts import read
from runner.report import compare
from runner.report.report import main as report
from runner.terminal import printer

ARCHIVE = Path(__file__).parent.parent.parent / "fixtures" / "records" / "records.tar.xz"
with tarfile.open(ARCHIVE) as opened:
    INTERRUPTED = sorted(
        {
            name.split("/")[2]
            for name in opened.getnames()
            if name.count("/") == 2 and "interrupted" in name
        }
    )


# Scores are near, no more, where other numbers of the same law are drawn since (CHANGELOG):
# particle filters are compiled, and
# ACRA draws an attacker's beliefs only while they can change his choice (few rows: AUC moves most),
# and hmc adapts its
# trajectories otherwise.  Gibbs' chain goes
# another way on processors whose products round otherwise in their last bits.
DRAW_OTHERWISE = {
    "bootstrap_filter": {"rel": 3.0, "abs": 0.5},
    "beta_bootstrap_filter": {"rel": 3.0, "abs": 0.5},
    "acra": {"rel": 3.0, "abs": 0.5},
    "gibbs": {"rel": 0.05},
    "hmc": {"rel": 3.0, "abs": 1.0},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    with tarfile.open(ARCHIVE) as opened:
        opened.extractall(folder, filter="data")
    return folder


# A fast one of the list, named here, has a state of the same base class.
SLOW = {
    "adam_nr",  # sgld; all states of today are in the fast tests/contract/test_runs.py
    "beta_bootstrap_filter",  # bootstrap_filter
    "dsvi_natural",  # dsvi
    "hmc",  # nuts
    "psgld",  # sgld
    "q_learning",  # fpq_learning
    "random_walk_mh",  # mala
    "sgdm_r",  # sghmc
    "sgld_r",  # sgld
    "sgld_svrg",  # sgld
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in INTERRUPTED],
)
def test_an_interrupted_run_goes_on_to_the_same_result(
    records, tmp_path, monkeypatch, capsys, name
):
    facts = read(records / "interrupted" / name)
    folder = tmp_path / "outputs" / facts["experiment"] / facts["signature"]
    shutil.copytree(records / "interrupted" / name, folder)
    expected = json.loads((folder / "expected.json").read_text())
    monkeypatch.chdir(tmp_path)
    assert resume.main(["resume", str(folder)]) == 0
    assert "resumed at step" in capsys.readouterr().out
    after = read(folder)
    assert after["state"] == "done"
    assert after["result"].keys() >= expected.keys()  # a score that came later is there too
    near = DRAW_OTHERWISE.get(name, {"rel": 1e-9})
    for metric, values in expected.items():
        assert after["result"][metric] == pytest.approx(values, nan_ok=True, **near), metric


def test_a_run_that_was_done_is_shown_as_it_was(records, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(shutil.copytree(records / "done", tmp_path / "done"))
    monkeypatch.setattr(printer.out, "_width", 160)
    (folder,) = Path("outputs").glob("mog/*")
    cfg = OmegaConf.load(folder / "config.yaml")
    experiment = cfg.pop("experiment")
    assert attempt(cfg, experiment, None).code == 0
    # values are shown as they are typed now
    shown = Path("shown.txt").read_text().replace("[0.0, 0.0]", "[0.0,0.0]")
    shown = shown.replace("smoke=True", "smoke=true")
    assert capsys.readouterr().out == shown


def test_two_records_side_by_side(records, capsys):
    folders = sorted(str(path) for path in (records / "study" / "mog").iterdir())
    assert compare.main(["compare", *folders[:2]]) == 0
    assert "error_mean" in capsys.readouterr().out


def test_a_study_is_reported_with_the_same_numbers(records, tmp_path):
    before = list(csv.DictReader((records / "study/small/report/small.csv").open()))
    assert (
        report(["report", "small", "--output-dir", str(records / "study"), "--to", str(tmp_path)])
        == 0
    )
    now = list(csv.DictReader((tmp_path / "small.csv").open()))
    # columns may have been added; the one-sided "p worse" became the two-sided p
    kept = [name for name in before[0] if name != "p worse"]
    assert [{name: line[name] for name in kept} for line in now] == [
        {name: line[name] for name in kept} for line in before
    ]
    added = {"p, Holm", "p McNemar", "row", "pairs", "p", "smoke"}
    assert set(now[0]) - set(before[0]) == added
    scores = [
        list(csv.DictReader(path.open()))
        for path in (
            tmp_path / "small_replicates.csv",
            records / "study/small/report/small_replicates.csv",
        )
    ]
    assert all(line.pop("protocol") for line in scores[0])  # a later column
    assert scores[0] == scores[1]
