"""Distances of predictions from the predictions of a study's gold row, replicate by replicate."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from components.metrics.predictive_distance import predictive_distances
from runner.record.facts import skip_unreadable
from runner.record.outcomes import predictions_file
from runner.record.scores import ReplicateScores
from runner.report.run_views import RunView

PREDICTIONS = ["label", "mean", "sd"]


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> pd.DataFrame:
    return pd.read_csv(path)[PREDICTIONS].astype(float)


def read_predictions(folder: Path, replicate: int) -> pd.DataFrame:
    """Columns label, mean and sd of a replicate's test rows; empty if they were not kept."""
    path = predictions_file(folder, replicate)
    with suppress(FileNotFoundError), skip_unreadable(path):
        return _read(path, path.stat().st_mtime_ns)
    return pd.DataFrame(columns=PREDICTIONS)


def measure_distances(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, float]:
    """``predictive_distances`` of predictions; empty if predictions are missing or their labels
    differ."""
    if ours.empty or len(ours) != len(theirs) or not np.allclose(ours["label"], theirs["label"]):
        return {}
    moments = [each[name].to_numpy() for each in (ours, theirs) for name in ("mean", "sd")]
    return predictive_distances(*moments)


def distances(view: RunView, gold: RunView, metric: str) -> ReplicateScores:
    """Distances between a run and the gold row's run in the same cell, by (seed, replicate).

    ``metric`` is a key of ``predictive_distances``.  Only replicates that both runs have finished,
    with the same labels and with kept predictions, are included.
    """
    shared = view.facts["finished"].keys() & gold.facts.get("finished", {}).keys()
    by_replicate: ReplicateScores = {}
    if view.folder and gold.folder:
        for replicate in sorted(map(int, shared)):
            ours = read_predictions(view.folder, replicate)
            theirs = read_predictions(gold.folder, replicate)
            # labels are kept at full precision
            is_same = np.array_equal(ours["label"], theirs["label"])
            if is_same and (measured := measure_distances(ours, theirs)):
                by_replicate[view.facts["seed"], replicate] = measured[metric]
    return by_replicate
