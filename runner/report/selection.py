"""The part of a study that ``runner report --only`` shows."""

from __future__ import annotations

import re
from dataclasses import replace

from runner.study.choice import choose
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import CostSpec, EvolutionSpec, RankSpec
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import TableSpec


def restrict(snapshot: Snapshot, only: list[str]) -> Snapshot:
    """The snapshot with the runs that ``--only`` leaves, and a study that shows only these.

    Runs of rows that tables divide by, that distances are measured from or that figures
    subtract stay as inputs; they are not shown.

    Raises:
        ConfigError: ``--only`` names a key or a value that no run has.
    """
    runs = choose(snapshot, only)
    study = _restrict_study(snapshot.study, runs)
    inputs = _input_rows(study)
    chosen = {id(run) for run in runs}
    kept = [run for run in snapshot.runs if id(run) in chosen or run.row in inputs]
    return replace(snapshot, study=study, runs=kept)


def _restrict_study(study: StudyDefinition, runs: list[FrozenRun]) -> StudyDefinition:
    """The study's tables and figures with the rows and grid values of some runs."""
    rows = list(dict.fromkeys(run.row for run in runs))
    tables = [_restrict_table(table, study, rows) for table in study.tables]
    values = {key: {run.cell[key] for run in runs if key in run.cell} for key in study.grid}
    inputs = _input_rows(study)
    figures = {
        kind: [
            figure.model_copy(update={"rows": names})
            for figure in getattr(study, kind)
            if (names := [row.name for row in study.rows_of_figure(figure) if row.name in rows])
            and not _lacks_column(figure, values)
        ]
        for kind in ("figures", "evolutions", "spreads", "ranks")
    }
    return study.model_copy(
        update={
            "rows": [
                row.model_copy(update={"grid": _restrict_grid(row.grid, values)})
                for row in study.rows
                if row.name in rows or row.name in inputs
            ],
            "grid": _restrict_grid(study.grid, values) or {},
            "tables": [table for table in tables if table.rows],
            "reference": study.reference if study.reference in rows else None,
            **figures,
        }
    )


def _restrict_table(table: TableSpec, study: StudyDefinition, rows: list[str]) -> TableSpec:
    shown = table.rows if table.rows is not None else [row.name for row in study.rows]
    return table.model_copy(update={"rows": [name for name in shown if name in rows]})


def _restrict_grid(
    grid: dict[str, list[object]] | None, values: dict[str, set[object]]
) -> dict[str, list[object]] | None:
    """A grid without the values that no run has."""
    if grid is None:
        return None
    return {
        key: [value for value in listed if value in values.get(key, listed)]
        for key, listed in grid.items()
    }


def _lacks_column(figure: object, values: dict[str, set[object]]) -> bool:
    """True if a figure needs a column or a cell that no run has."""
    if isinstance(figure, RankSpec) and figure.column is not None:
        listed = {str(value) for group in values.values() for value in group}
        return bool(listed) and figure.column not in listed
    cell = figure.cell if isinstance(figure, CostSpec | EvolutionSpec) else {}
    return any(value not in values.get(key, {value}) for key, value in cell.items())


def _input_rows(study: StudyDefinition) -> set[str]:
    """Rows that others are computed from."""
    rows = {study.gold, *(table.over for table in study.tables)}
    rows |= {figure.less for figure in study.evolutions if isinstance(figure, EvolutionSpec)}
    return {row for row in rows if row is not None}


def folder_name(only: list[str]) -> str:
    """A folder's name for a selection: ``only_model-igp_preset-tuned``."""
    words = re.sub(r"[^\w.+-]+", "_", "_".join(only).replace("=", "-")).strip("_")
    return f"only_{words}"[:80]
