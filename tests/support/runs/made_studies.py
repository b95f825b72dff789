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

STEP_SIZES = {
    "name": "two",
    "description": "Two step sizes of two samplers.",
    "overrides": ["smoke=true", "tracking=false", "offline=true"],
    "grid": {"steps": [60, 80], "seed": [0, 1]},
    "rows": [
        {
            "label": "SGLD",
            "model": "sgld",
            "preset": "small",
            "experiment": "mog",
            "overrides": ["inference.step_size=0.01"],
        },
        {
            "label": "SGLD",
            "model": "sgld",
            "preset": "large",
            "experiment": "mog",
            "grid": {"steps": [60]},
        },
    ],
    "tables": [
        {
            "name": "mean",
            "title": "Error of the mean",
            "columns": "steps",
            "metric": "error_mean",
            "better": "lower",
        }
    ],
}


def make_definition(**importance: float) -> StudyDefinition:
    """A study with a row for each name."""
    return StudyDefinition.model_validate(
        {
            "name": "s",
            "description": "d",
            "rows": [
                {"label": name, "model": "m", "preset": "", "experiment": "e", "importance": value}
                for name, value in importance.items()
            ],
            "tables": [{"name": "t", "title": "t", "columns": {"r": "rmse"}}],
        }
    )


def make_run(name: str, row: str = "a", **config: Any) -> FrozenRun:
    """A run of the experiment e."""
    return FrozenRun(name, row, {}, [], "e", name, "digits", CONFIG | config)


def make_snapshot(output_dir: Path, *runs: FrozenRun) -> Snapshot:
    return Snapshot("s", make_definition(a=1.0), "now", "", [], list(runs), output_dir)
