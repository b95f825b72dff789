"""Restriction of a study for ``runner report --only``."""

from __future__ import annotations

import re
from dataclasses import replace

from runner.study.choice import choose
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import CostSpec, EvolutionSpec, RankSpec
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import Grid

# keys of a study with parts that select rows
PARTS = ("tables", "figures", "evolutions", "spreads", "ranks")
Values = dict[str, set[object]]  # values of the chosen runs by grid key


def restrict(snapshot: Snapshot, only: list[str]) -> Snapshot:
    """Snapshot with the runs selected by ``--only``, and a study restricted to them.

    Runs of rows used as divisors of tables, references of distances or subtrahends of figures are
    kept as inputs but not displayed.

    Raises:
        ConfigError: ``--only`` has an unknown key or value.
    """
    runs = choose(snapshot, only)
    study = _restrict_study(snapshot.study, runs)
    inputs = _input_rows(study)
    chosen = set(map(id, runs))
    kept = [run for run in snapshot.runs if id(run) in chosen or run.row in inputs]
    return replace(snapshot, study=study, runs=kept)


def _restrict_study(study: StudyDefinition, runs: list[FrozenRun]) -> StudyDefinition:
    """Restrict the tables and figures of a study to the rows and grid values of some runs."""
    rows = {run.row for run in runs}
    values = {key: {run.cell[key] for run in runs if key in run.cell} for key in study.grid}
    parts = {
        name: [
            part.model_copy(update={"rows": names})
            for part in getattr(study, name)
            if (names := [row.name for row in study.rows_of_figure(part) if row.name in rows])
            and not _lacks_column(part, values)
        ]
        for name in PARTS
    }
    reference = study.reference if study.reference in rows else None
    shown = study.model_copy(update=parts | {"reference": reference})
    rows |= _input_rows(shown)
    kept = [
        row.model_copy(update={"grid": row.grid and _restrict_grid(row.grid, values)})
        for row in study.rows
        if row.name in rows
    ]
    return shown.model_copy(update={"rows": kept, "grid": _restrict_grid(study.grid, values)})


def _restrict_grid(grid: Grid, values: Values) -> Grid:
    """Remove values without runs from a grid."""
    return {
        key: [value for value in listed if value in values.get(key, listed)]
        for key, listed in grid.items()
    }


def _lacks_column(part: object, values: Values) -> bool:
    """True if a figure requires a column or a cell without runs."""
    if isinstance(part, RankSpec) and part.column is not None:
        listed = {str(value) for group in values.values() for value in group}
        return bool(listed) and part.column not in listed
    cell = part.cell if isinstance(part, CostSpec | EvolutionSpec) else {}
    return any(value not in values.get(key, {value}) for key, value in cell.items())


def _input_rows(study: StudyDefinition) -> set[str]:
    """Rows used as inputs of others."""
    rows = {study.gold, *(table.over for table in study.tables)}
    rows |= {figure.less for figure in study.evolutions}
    return {row for row in rows if row is not None}


def folder_name(only: list[str]) -> str:
    """Folder name of a selection: ``only_model-igp_preset-tuned``."""
    words = re.sub(r"[^\w.+-]+", "_", "_".join(only).replace("=", "-")).strip("_")
    return f"only_{words}"[:80]
