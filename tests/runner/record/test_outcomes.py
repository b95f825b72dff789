"""McNemar's test over the test labels of two runs, from their records."""

from __future__ import annotations

import json
from math import comb

import numpy as np
import pytest
from support.runs.made_records import make_record

from runner.python.comparing import compare
from runner.record.outcomes import mcnemar, outcomes_file, read_outcomes, write_outcomes
from runner.report.compare import differences_table
from runner.report.compared_record import load
from runner.report.comparison import Comparison


def labels(n: int = 103, seed: int = 0, share: float = 0.7) -> np.ndarray:
    return np.random.default_rng(seed).random(n) < share


def test_exact_test_equals_statsmodels_and_its_sum():
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    for seed in range(6):
        first = labels(40, seed)
        other = labels(40, seed + 100, 0.4 + 0.1 * seed)
        ours = mcnemar(first, other)
        table = [
            [int((first & other).sum()), ours.first],
            [ours.second, int((~first & ~other).sum())],
        ]
        assert ours.p == pytest.approx(contingency.mcnemar(table, exact=True).pvalue)
        n = ours.first + ours.second
        least = min(ours.first, ours.second)
        assert ours.p == pytest.approx(
            min(1.0, 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n)
        )


def test_identical_classifiers_have_no_difference():
    assert mcnemar(labels(), labels()).p == 1.0


def test_outcomes_are_stored_as_bits(tmp_path):
    kept = {"accuracy": labels(), "robust_accuracy": labels(seed=1)}
    write_outcomes(tmp_path, 0, kept)
    read = read_outcomes(tmp_path, 0)
    assert list(read) == list(kept)
    assert all(np.array_equal(read[name], kept[name]) for name in kept)
    assert outcomes_file(tmp_path, 0).stat().st_size < 200
    for damaged in (
        "",
        "[]",
        '{"labels": 3, "right": {"accuracy": "zz"}}',
        '{"labels": "many", "right": {}}',
    ):
        outcomes_file(tmp_path, 0).write_text(damaged)
        assert read_outcomes(tmp_path, 0) == {}


def test_compared_runs_have_the_p_value_of_their_test_labels(tmp_path):
    first = labels(200, 0, 0.8)
    other = labels(200, 1, 0.5)
    folders = []
    for signature, right in (("a" * 12, first), ("b" * 12, other)):
        share = float(right.mean())
        scores = {
            "result": {"robust_accuracy": [share]},
            "finished": {"0": {"robust_accuracy": share}},
        }
        folder = make_record(tmp_path, signature, **scores)
        write_outcomes(folder, 0, {"robust_accuracy": right})
        folders.append(folder)
    exact = mcnemar(first, other)
    assert exact.p < 0.01
    runs = {folder.name: load(folder) for folder in folders}
    differences = differences_table(Comparison.of(runs))
    assert list(differences.index) == ["robust_accuracy"]
    assert differences.iloc[0, 0].endswith(f", McNemar p {exact.p:.2g}")
    tests = compare(*map(str, folders)).tests.set_index("metric")
    assert tests["p"]["robust_accuracy"] == exact.p
    facts = json.loads((folders[1] / "run.json").read_text())
    # other rows: no pairs
    (folders[1] / "run.json").write_text(json.dumps(facts | {"seed": 1}))
    runs = {folder.name: load(folder) for folder in folders}
    assert differences_table(Comparison.of(runs)).iloc[0, 0] == "—"
