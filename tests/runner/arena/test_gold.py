"""Predictions of a gold row as data, and distances to them."""

import gzip

import numpy as np
import pytest

from runner.arena import stored
from runner.arena.suite import load_suite
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.report.scores.distances import measure_distances, read_predictions
from runner.study.snapshot import FrozenRun, Snapshot
from scripts.arena import keep_gold

SUITE = """
{name: nets, measures: nets, description: nets, gold: HMC,
 problems: {yacht: [dataset=uci_regression, dataset.set=yacht]},
 rows: [{label: HMC, model: mlp, preset: "", overrides: [inference=hmc]}],
 tables: [{name: d, title: d, columns: problem, metric: distance}]}
"""
LABELS = [1.0, 2.0, 4.0]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    (tmp_path / "arena").mkdir()
    (tmp_path / "arena" / "nets.yaml").write_text(SUITE)
    monkeypatch.setenv(conf_folders.ENV_VARIABLE, str(tmp_path))
    return load_suite("nets")


def write_predictions(folder, means, sds, labels=LABELS):
    path = folder / "predictions" / "0.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{i},,{y},{m},{s}" for i, (y, m, s) in enumerate(zip(labels, means, sds, strict=True))]
    path.write_text("\n".join(["row,task,label,mean,sd", *rows]) + "\n")
    return folder


@pytest.fixture
def gold_predictions(suite, tmp_path, monkeypatch):
    """Predictions of a study's gold row, kept next to the suite."""
    cell = {"dataset.set": "yacht"}
    runs = [FrozenRun(f"{row} yacht", row, cell, [], "e", row, "d", {}) for row in ("HMC", "VI")]
    snapshot = Snapshot("quality", suite.to_study(list(suite.rows)), "", "", [], runs, tmp_path)
    write_predictions(snapshot.folder(runs[0]), [1.0, 2.0, 3.0], [0.5, 1.0, 2.0])
    write_predictions(snapshot.folder(runs[1]), [9.0, 9.0, 9.0], [9.0, 9.0, 9.0])
    monkeypatch.setattr(Snapshot, "facts", lambda self, run: {"state": "done"})
    assert keep_gold(suite, snapshot) == 1
    return stored.load_gold(suite)


def measure(stored_rows, folder, problem="yacht"):
    chosen = stored_rows[stored_rows["problem"] == problem]
    return measure_distances(read_predictions(folder, 0), chosen)


def test_distance_equals_that_of_gaussians(gold_predictions, tmp_path):
    """√ mean (Δm² + Δs²) / s*², and each of its parts, by hand."""
    folder = write_predictions(tmp_path / "mine", [1.5, 2.0, 7.0], [0.5, 2.0, 1.0])
    measured = measure(gold_predictions, folder)
    squares = {
        "distance_mean": 1.0 + 0.0 + 4.0,
        "distance_sd": 0.0 + 1.0 + 0.25,
        "distance": 1.0 + 1.0 + 4.25,
    }
    for name, v in squares.items():
        assert measured[name] == pytest.approx(np.sqrt(v / 3))


def test_mismatched_predictions_have_no_distance(gold_predictions, tmp_path):
    folder = write_predictions(tmp_path / "mine", [1.0] * 3, [1.0] * 3, labels=[1.0, 2.0, 5.0])
    fewer = write_predictions(tmp_path / "fewer", [1.0], [1.0], labels=[1.0])
    for place, problem in ((folder, "yacht"), (tmp_path, "yacht"), (fewer, "yacht"), (folder, "x")):
        assert measure(gold_predictions, place, problem) == {}


def test_damaged_file_is_named(suite, gold_predictions):
    path = stored.stored_file(suite.name, stored.ENDING)
    path.write_bytes(gzip.compress(b"problem,label\nyacht,x\n"))
    with pytest.raises(
        ConfigError, match=r"nets\.gold\.csv\.gz: cannot be read .*; restore the original file"
    ):
        stored.load_gold(suite)
