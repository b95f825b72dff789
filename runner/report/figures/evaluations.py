"""Evaluations in the records of a study as a tidy frame, for figures of complete runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from components.metrics.names import COST_PREFIX
from runner.record.scores import read_evaluations
from runner.report.run_views import RunView
from runner.study.table_specs import POOLED_KEY

if TYPE_CHECKING:
    import pandas as pd


def evaluations_frame(
    runs: Sequence[RunView],
    rows: Collection[str | None],
    cell: Mapping[str, object],
    metrics: Sequence[str],
) -> pd.DataFrame:
    """One row per evaluation, metric and replicate of the runs of some rows in a cell of the grid.

    Columns: run, row, panel (values of the other grid keys), is_shared (replicates side by side share
    their seconds), replicate, steps, seconds (of training so far), metric, value and recorded costs;
    no columns if there are no such lines.
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
    for line in read_evaluations(view.folder) if view.folder else ():
        costs = {kind: value for kind, value in line.values.items() if kind.startswith(COST_PREFIX)}
        for metric in metrics:
            if metric in line.values:
                yield (
                    common
                    | costs
                    | {
                        "replicate": f"{view.facts['seed']}/{line.replicate}",
                        "steps": line.step,
                        "seconds": line.seconds,
                        "metric": metric,
                        "value": line.values[metric],
                    }
                )
