"""``keep_predictions``: kept predictions of test rows by replicate, and their reuse."""

import numpy as np
import pandas as pd
import pytest

from runner.execution.execute import run

UCI = [
    "dataset=uci_regression",
    "dataset.set=yacht",
    "dataset.simulated=true",
    "model=mlp",
    "model.widths=[3]",
    "inference=map",
    "steps=3",
]


def test_predictions_are_saved_in_units_of_the_labels(make_job):
    executed, result = run(make_job(*UCI, "replicates=2", "keep_predictions=true"))
    for replicate in (0, 1):
        table = pd.read_csv(executed.job.folder / "predictions" / f"{replicate}.csv")
        assert list(table) == ["row", "task", "label", "mean", "sd"]
        assert len(table) == 31
        error = np.sqrt(((table["mean"] - table["label"]) ** 2).mean())
        assert error == pytest.approx(result["rmse"][replicate])
        z = (table["label"] - table["mean"]) / table["sd"]  # one network predicts a Gaussian
        density = -0.5 * z**2 - np.log(table["sd"]) - 0.5 * np.log(2 * np.pi)
        assert density.mean() == pytest.approx(result["log_likelihood"][replicate])
    again, _ = run(make_job(*UCI, "replicates=3"))  # predictions are adopted with their replicates
    assert again.record.facts["taken_over"]["replicates"] == [0, 1]
    assert {p.name for p in (again.job.folder / "predictions").iterdir()} == {"0.csv", "1.csv"}


def test_predictions_are_saved_only_if_requested(make_job):
    plain = make_job(*UCI)
    asked = make_job(*UCI, "keep_predictions=true")
    assert plain.signature == asked.signature
    executed, _ = run(plain)
    assert not (executed.job.folder / "predictions").exists()
