"""How far what the runs of a study predict lies from what the runs of its gold row predict,
replicate by replicate."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.metrics.predictive_distance import predictive_distances
from runner.record.facts import skip_unreadable
from runner.record.outcomes import predictions_file
from runner.study.snapshot import FrozenRun, Snapshot


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


def distances(
    snapshot: Snapshot, run: FrozenRun, facts: dict[str, Any], metric: str
) -> dict[tuple[int, int], float]:
    """A metric of ``predictive_distances`` by (seed, replicate).

    Included are the replicates that this run and the gold row's run in the same cell have
    both finished on the same labels, with predictions kept.
    """
    gold = next(
        (r for r in snapshot.runs if r.row == snapshot.study.gold and r.cell == run.cell), None
    )
    finished = (snapshot.facts(gold) or {}).get("finished", {}) if gold else {}
    by_replicate: dict[tuple[int, int], float] = {}
    for replicate in facts.get("finished", {}).keys() & finished.keys():
        ours, theirs = (
            read_predictions(snapshot.folder(r), int(replicate))
            for r in (run, gold)
            if r is not None
        )
        if ours and theirs and np.array_equal(ours["label"], theirs["label"]):
            values = predictive_distances(ours["mean"], ours["sd"], theirs["mean"], theirs["sd"])
            by_replicate[facts["seed"], int(replicate)] = values[metric]
    return dict(sorted(by_replicate.items()))
