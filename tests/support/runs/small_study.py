"""A study of four rows and two columns, and hand-written records of its runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from runner.report.origin import Kept
from runner.report.report import write
from runner.report.results import layout_table
from runner.report.scores.cells import Cell
from runner.study import snapshot
from runner.study.definition import StudyDefinition
from runner.study.snapshot import FrozenRun, Snapshot

SIZES = [100, 1000]
STUDY = StudyDefinition.model_validate(
    {
        "name": "small",
        "description": "Two <sizes> & three models.",
        "replicates": 6,
        "grid": {"dataset.n_train": SIZES},
        "rows": [
            {"label": "sMDGP", "model": "smdgp", "preset": "as published", "experiment": "a"},
            {"label": "sMDGP", "model": "smdgp", "preset": "tuned", "experiment": "b"},
            {"label": "iGP", "model": "igp", "preset": "tuned", "experiment": "c"},
            {"label": "iRF", "model": "irf", "preset": "", "experiment": "d"},
        ],
        "reference": "sMDGP, tuned",
        "tables": [
            {
                "name": "nlpp",
                "title": "NLPP",
                "columns": "dataset.n_train",
                "metric": "nlpp",
                "better": "lower",
                "published": "boustati_table_3_1",
            },
        ],
        "figures": [{"name": "curve", "x": "dataset.n_train", "metrics": ["nlpp"]}],
    }
)
NOISE = np.array([-0.03, 0.02, 0.01, -0.02, 0.03, -0.01])
NOISE_OF_EIGHT = np.concatenate([NOISE, NOISE[:2]])
FACTS = {
    "state": "done",
    "data": "sarcos",
    "choice": {},
    "seed": 0,
    "smoke": False,
    "vectorised": False,
    "started": "",
    "ended": "",
    "seconds": 3600.0,
    "error": None,
    "threads": 1,
    "git": {"sha": "f" * 40, "diff": ""},
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "hardware": {"cpu": "a processor"},
}


def launch(folder: Path) -> Snapshot:
    """The study of eight runs before any of them starts."""
    runs = [
        FrozenRun(
            f"{row.name} n_train={n}",
            row.name,
            {"dataset.n_train": n},
            [],
            str(row.experiment),
            f"{row.experiment}{n}",
            "sarcos",
        )
        for row in STUDY.rows
        for n in SIZES
    ]
    frozen = Snapshot("small", STUDY, "2026-01-01", "0123456789abcdef", [], runs, folder)
    snapshot.save(frozen)
    return frozen


def redefine(study: Snapshot, **changes: Any) -> Snapshot:
    """The launched study with changed keys in its definition, validated."""
    definition = StudyDefinition.model_validate(study.study.model_dump() | changes)
    return replace(study, study=definition)


RHAT = {"about": "run", "check": "R̂ is below 1.01", "passed": False, "detail": "1.2"}


def record(
    study: Snapshot,
    experiment: str,
    n: int,
    nlpp: Iterable[float] = (),
    lines: Iterable[dict[str, Any]] = (),
    **changes: Any,
) -> Path:
    """Write run.json and metrics.jsonl of one run, as the training loop does."""
    values = [float(v) for v in nlpp]
    entry = {"experiment": experiment, "signature": f"{experiment}{n}", "replicates": len(values)}
    facts = FACTS | entry | {"finished": {}, "result": {"nlpp": values}} | changes
    if facts["state"] == "done" and not facts["finished"]:
        facts["finished"] = _finish(facts["result"], facts["vectorised"])
    folder = study.output_dir / experiment / f"{experiment}{n}"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(facts))
    if text := "".join(json.dumps(line) + "\n" for line in lines):
        (folder / "metrics.jsonl").write_text(text)
    return folder


def _finish(result: dict[str, list[float]], vectorised: bool) -> dict[str, dict[str, Any]]:
    """``finished`` of a completed run: one replicate, or all."""
    if vectorised:
        return {"0": dict(result)}
    count = max(map(len, result.values()))
    return {str(r): {name: values[r] for name, values in result.items()} for r in range(count)}


def line(step: int, phase: str, replicate: int = 0, time: float = 1.0, **metrics: Any) -> dict:
    """A line of metrics.jsonl."""
    where = {"step": step, "replicate": replicate, "time": time, "phase": phase}
    return where | {"metrics": metrics}


def find_cells(study: Snapshot, table: int = 0, earlier: Any = None) -> dict[tuple, Cell]:
    """Cells of a table by row and column."""
    laid = layout_table(study.study, study, Kept() if earlier is None else Kept(earlier))[table]
    return {(cell.row.name, cell.column): cell for cell in laid.cells}


def write_pages(study: Snapshot, **keys: Any) -> list[str]:
    """The two pages of a report."""
    written, _ = write("small", study.study, study, study.output_dir / "out", **keys)
    pages = [path for path in written if path.suffix in (".html", ".md")]
    return [page.read_text(encoding="utf-8") for page in pages]
