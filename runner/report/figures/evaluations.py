"""Evaluations in the records of a study as a tidy frame, for figures of complete runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.record.lines import Line, by_replicate, readable_lines
from runner.report.run_views import RunView
from runner.study.table_specs import POOLED_KEY

if TYPE_CHECKING:
    import pandas as pd


def training_seconds(lines: list[Line]) -> Iterator[tuple[Line, float]]:
    """Lines with the training time of the replicate so far, without earlier evaluations."""
    clock: dict[int, float] = {}  # time of the last line by replicate
    seconds: dict[int, float] = {}
    for line in lines:
        r = line["replicate"]
        if line["phase"] == "train":
            seconds[r] = seconds.get(r, 0.0) + line["time"] - clock.get(r, 0.0)
        clock[r] = line["time"]
        yield line, seconds.get(r, 0.0)


def evaluations_frame(
    runs: Sequence[RunView],
    rows: Collection[str | None],
    cell: Mapping[str, object],
    metrics: Sequence[str],
) -> pd.DataFrame:
    """One row per evaluation, metric and replicate of the runs of some rows in a cell of the grid.

    Columns: run, row, panel (values of the other grid keys), is_shared (replicates side by side share
    their seconds), replicate, line (in the record), steps, seconds (of training so far), metric and
    value; no columns if there are no such lines.
    """
    import pandas as pd

    return pd.DataFrame(
        line
        for view in runs
        if view.facts and view.run.row in rows and cell.items() <= view.run.cell.items()
        for line in _list_values(view, cell, metrics)
    )


def _list_values(
    view: RunView, cell: Mapping[str, object], metrics: Sequence[str]
) -> Iterator[dict[str, Any]]:
    run = view.run
    keys = (key for key in run.cell if key not in (POOLED_KEY, *cell))
    common = {
        "run": run.name,
        "row": run.row,
        "panel": ", ".join(f"{key.split('.')[-1]} {run.cell[key]}" for key in keys),
        "is_shared": view.facts["vectorised"],
    }
    lines = training_seconds(readable_lines(view.folder) if view.folder else [])
    for i, (line, seconds) in enumerate(lines):
        for metric in metrics if line["phase"] != "train" else ():
            for r, value in by_replicate(line, metric):
                yield common | {
                    "replicate": f"{view.facts['seed']}/{r}",
                    "line": i,
                    "steps": line["step"],
                    "seconds": seconds,
                    "metric": metric,
                    "value": value,
                }
