"""How far what the runs of a study predict lies from what the runs of its gold row predict,
replicate by replicate."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.metrics.predictive_distance import predictive_distances
from runner.record.facts import skip_unreadable
from runner.record.outcomes import predictions_file
from runner.report.run_views import RunView
from runner.statistics.paired_tests import ReplicateScores


@lru_cache(maxsize=64)
def _predictions(path: Path, changed: int) -> dict[str, NDArray[np.float64]]:
    """Columns label, mean and sd of a file that a run has kept."""
    import pandas as pd

    table = pd.read_csv(path)
    return {name: table[name].to_numpy(dtype=np.float64) for name in ("label", "mean", "sd")}


def read_predictions(folder: Path, replicate: int) -> dict[str, NDArray[np.float64]] | None:
    """Columns label, mean and sd of a replicate's test rows; None: they were not kept."""
    path = predictions_file(folder, replicate)
    with suppress(FileNotFoundError), skip_unreadable(path):
        return _predictions(path, path.stat().st_mtime_ns)
    return None


def distances(view: RunView, gold: RunView, metric: str) -> ReplicateScores:
    """A metric of ``predictive_distances`` from the gold row's run in the same cell, by (seed,
    replicate).

    Included are the replicates that both runs have finished on the same labels, with predictions
    kept.
    """
    shared = view.facts["finished"].keys() & gold.facts.get("finished", {}).keys()
    by_replicate: ReplicateScores = {}
    for replicate in sorted(map(int, shared)):
        ours, theirs = (
            read_predictions(v.folder, replicate) if v.folder else None for v in (view, gold)
        )
        if ours and theirs and np.array_equal(ours["label"], theirs["label"]):
            values = predictive_distances(ours["mean"], ours["sd"], theirs["mean"], theirs["sd"])
            by_replicate[view.facts["seed"], replicate] = values[metric]
    return by_replicate
