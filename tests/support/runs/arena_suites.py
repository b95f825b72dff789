"""A suite of two densities for the tests of the arena, and lines of scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from runner.arena.suite import Suite
from runner.compose.compose import Composed
from runner.compose.job import prepare
from runner.disk import conf_folders
from runner.execution.execute import run
from runner.terminal.printer import suppress_output

TOY: dict[str, Any] = {
    "name": "toy",
    "measures": "two densities",
    "description": "Two densities.",
    "replicates": 2,
    "overrides": ["model=target_density", "tracking=false"],
    "problems": {"normal": ["dataset=gaussian"], "mixture": ["dataset=mixture_of_gaussians_1d"]},
    "budgets": {"small": {"gradients": 400, "densities": 1200}},
    "rows": [
        {"label": "SGLD", "model": "sgld", "preset": "", "overrides": ["inference=sgld"]},
        {"label": "walk", "model": "walk", "preset": "", "overrides": ["inference=random_walk_mh"]},
    ],
    "tables": [
        {"name": "error", "title": "Error", "columns": "problem", "metric": "error_mean"},
        {"name": "ess", "title": "ESS", "columns": "problem", "metric": "ess"},
    ],
}


def toy(**changes: Any) -> Suite:
    """The suite with changed keys."""
    return Suite(**TOY | changes)


@contextmanager
def use_suite(folder: Path, suite: dict[str, Any]) -> Iterator[Path]:
    """Put the YAML of a suite into a folder ``conf``, use that folder, and return the YAML's
    path."""
    path = folder / "conf" / "arena" / f"{suite['name']}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    with conf_folders.restore_folders_on_exit():
        conf_folders.use(str(folder / "conf"))
        yield path


def make_line(
    row: str, problem: str, score: float | None, state: Any = "done", step: int = -1, **more: Any
) -> dict[str, Any]:
    """Line with or without a score, at a cost of 100 gradients."""
    cost = more.pop("cost", 100.0)
    values = {} if score is None else {"error_mean": score, "cost/gradients": cost}
    names = {"budget": "small", "data": "data", "commit": "abc", "seed": 0, "replicate": 0}
    place = {"row": row, "problem": problem, "state": state, "step": step}
    return names | place | values | more


def make_lines(problems: str = "pqrstu", **scores: Any) -> list[dict[str, Any]]:
    """Final lines of rows, with a score for each problem."""
    return [
        make_line(row, problem, score)
        for row, each in scores.items()
        for problem, score in zip(problems, each, strict=True)
    ]


def run_here(snapshot: Any, runs: Any, jobs: int, launcher: Any = None) -> int:
    """Replacement of ``run_remaining`` that runs in this process."""
    for frozen in runs:
        cfg = OmegaConf.create({**frozen.config, "output_dir": str(snapshot.output_dir)})
        cfg.pop("experiment")
        with suppress_output():
            run(prepare(Composed(cfg, frozen.experiment)))
    return 0
