"""Plan of a study's runs before they are composed: each row with each combination of the grid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from runner.study.definition import StudyDefinition
from runner.study.table_specs import PROBLEM_KEY


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study before it is composed."""

    row: str
    cell: dict[str, Any]  # grid key -> value
    overrides: list[str]

    @property
    def name(self) -> str:
        """Name, unique in a study."""
        return " ".join([self.row, *(f"{k.split('.')[-1]}={v}" for k, v in self.cell.items())])


def plan(study: StudyDefinition, extra: list[str]) -> list[PlannedRun]:
    """All runs of a study, column by column, so that a column is complete before the next begins.

    ``extra`` are overrides of this launch, which take precedence."""
    runs = []
    replicates = [] if study.replicates is None else [f"replicates={study.replicates}"]
    for row in study.rows:
        grid = study.grid if row.grid is None else row.grid
        experiment = [f"+experiment={row.experiment}"] if row.experiment else []
        for position, values in enumerate(itertools.product(*grid.values())):
            cell = dict(zip(grid, values, strict=True))
            problem = study.problems.get(str(cell.get(PROBLEM_KEY)), [])
            cells = [f"{k}={v}" for k, v in cell.items() if not problem or k != PROBLEM_KEY]
            cell_overrides = [o for k, v in cell.items() for o in row.cells.get(k, {}).get(v, [])]
            common = [*experiment, *replicates, *study.overrides]
            overrides = [*common, *problem, *row.overrides, *cells, *cell_overrides, *extra]
            runs.append((position, PlannedRun(row.name, cell, overrides)))
    return [run for _, run in sorted(runs, key=lambda r: r[0])]
