"""Studies with runs that were never composed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.study.definition import StudyDefinition
from runner.study.snapshot import FrozenRun, Snapshot

CONFIG = {
    "dataset": {"name": "digits"},
    "model": {"name": "mlp"},
    "inference": {"name": "map"},
    "steps": 1000,
    "replicates": 1,
    "eval_every": 250,
    "checkpoint_every": 500,
    "record_every": 10,
    "budget": None,
    "smoke": False,
    "seed": 0,
}


def made_definition(**importance: float) -> StudyDefinition:
    """A study with a row for each name."""
    return StudyDefinition.model_validate({
        "name": "s",
        "description": "d",
        "rows": [{"label": name, "model": "m", "preset": "", "experiment": "e", "importance": value}
                 for name, value in importance.items()],
        "tables": [{"name": "t", "title": "t", "columns": {"r": "rmse"}}],
    })  # fmt: skip


def made_run(name: str, row: str = "a", **config: Any) -> FrozenRun:
    """A run of the experiment e."""
    return FrozenRun(name, row, {}, [], "e", name, "digits", CONFIG | config)


def made_snapshot(output_dir: Path, *runs: FrozenRun) -> Snapshot:
    return Snapshot("s", made_definition(a=1.0), "now", "", [], list(runs), output_dir)
