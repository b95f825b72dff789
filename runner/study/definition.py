"""A study: runs, tables and figures that reproduce something printed.

It is defined in ``conf/study/*.yaml``.

rows     one per line of the table: a model under a preset (experiment and overrides)
grid     keys and values, each combination run for each row (seed: pooled, others: columns)
problems names and overrides: values of the grid key ``problem``
tables   layouts, each with the published table it is compared with; columns are
         values of a grid key, or metrics by name
figures  learning curves; with ``kind: cost`` scores against seconds, steps or gradients
evolutions  metrics from evaluation to evaluation, a line for each replicate or a band
            of them all
spreads  scores of every replicate, a violin or a box for each row
ranks    critical-difference diagrams: rows that differ by their ranks over columns or
         replicates
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PositiveInt, ValidationError, model_validator

from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import read_yaml
from runner.errors import ConfigError, nearest
from runner.statistics.published import load_published
from runner.study.figure_specs import (
    NOT_A_MAPPING_MESSAGE,
    CostSpec,
    DrawnFigure,
    EvolutionSpec,
    Figure,
    FigureSpec,
    FileName,
    RankSpec,
    SpreadSpec,
    StrictModel,
    describe_mistake,
)
from runner.study.table_specs import DISTANCES, POOLED_KEY, PROBLEM_KEY, Row, Splits, TableSpec


class StudyDefinition(StrictModel):
    """The whole of ``conf/study/<name>.yaml``."""

    name: FileName
    description: str  # what it is: sources, data, settings; heads the report
    replicates: PositiveInt | None = None  # of every run; None: each experiment's own
    overrides: list[str] = []  # of every run
    grid: dict[str, list[Any]] = {}  # key -> values; every row runs with each combination
    # name -> overrides that make it: values of the grid key ``problem``
    problems: dict[str, list[str]] = {}
    # experiment that all runs are recorded under; null: the one that each composes, or the study
    recorded_under: FileName | None = None
    rows: Annotated[list[Row], Field(min_length=1)]
    tables: list[TableSpec]
    figures: list[DrawnFigure] = []
    evolutions: list[EvolutionSpec] = []
    spreads: list[SpreadSpec] = []
    ranks: list[RankSpec] = []
    reference: str | None = None  # row with which the others are compared, replicate by replicate
    # reference row for the metrics distance, distance_mean, distance_sd and distance_tv
    gold: str | None = None
    # data that are split anew in each replicate; null: replicates share no rows
    splits: Splits | None = None
    # what a replicate draws anew, in words: heads the page
    draws_anew: str | None = None
    # of studies that are run in one night (make results-all) more important ones come first
    importance: Annotated[float, Field(allow_inf_nan=False)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _problems_are_a_grid(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and isinstance(problems := keys.get("problems"), dict):
            grid = keys.get("grid") or {}
            return keys | {"grid": {PROBLEM_KEY: list(problems)} | grid} if problems else keys
        return keys

    @model_validator(mode="after")
    def _check_consistency(self) -> StudyDefinition:
        for problem in _find_problems(self):
            raise ValueError(problem)
        return self

    @property
    def all_figures(self) -> list[Figure]:
        """Figures of every kind."""
        return [*self.figures, *self.evolutions, *self.spreads, *self.ranks]

    def overlap(self, column: str, data: str) -> float:
        """Test rows over training rows of overlapping splits; 0: replicates do not overlap."""
        if self.splits is None or (self.splits.data and data not in self.splits.data):
            return 0.0
        return self.splits.overlap(column)

    def rows_of_figure(self, figure: Figure) -> list[Row]:
        """The rows that a figure shows."""
        if figure.rows is None:
            return self.rows
        return [row for row in self.rows if not {row.name, row.label}.isdisjoint(figure.rows)]

    def row_labels(self, figure: Figure) -> tuple[dict[str, str], str]:
        """Label of each row that a figure shows, and the settings of all of them.

        Labels include settings if these differ.
        """
        rows = self.rows_of_figure(figure)
        presets = {row.preset for row in rows}
        if len(presets) == 1:
            return {row.name: row.label for row in rows}, presets.pop()
        return {row.name: row.name for row in rows}, ""

    def columns(self, table: TableSpec) -> list[str]:
        """Column headings of a table, in order."""
        if isinstance(table.columns, dict):
            return list(table.columns)
        grids = [row.grid or self.grid for row in self.rows]
        values = list(dict.fromkeys(v for grid in grids for v in grid.get(table.columns, [])))
        # A row with a grid of its own may come first: numbers are sorted, words keep the order of
        # the YAML.
        if all(isinstance(value, int | float) for value in values):
            values.sort()
        return [str(value) for value in values]


def _find_problems(study: StudyDefinition) -> Iterator[str]:
    """Messages about what is wrong in a study."""
    names = [row.name for row in study.rows]
    for row in study.rows:
        grid = study.grid if row.grid is None else row.grid
        for key, values in row.cells.items():
            for value in values:
                if value not in grid.get(key, []):
                    yield f"row {row.name}: cells has {key}={value}, which is not in its grid"
        if names.count(row.name) > 1:
            yield f"rows: {row.name} occurs twice"
    for key, name in (("reference", study.reference), ("gold", study.gold)):
        if name is not None:
            yield from _unknown(f"{key}: {name} is not a row", name, names)
    for table in study.tables:
        yield from _find_in_table(study, table, names)
    metrics = [metric for table in study.tables for metric in table.metrics]
    for spread in study.spreads:
        for name in [*spread.metrics, *spread.levels, *spread.words]:
            yield from _unknown(f"figure {spread.name}: {name} is in no table", name, metrics)
    for ranks in study.ranks:
        yield from _find_in_ranks(study, ranks)
    yield from _find_in_figures(study, names)


def _find_in_figures(study: StudyDefinition, names: list[str]) -> Iterator[str]:
    labels = [row.label for row in study.rows]
    for figure in study.all_figures:
        for name in figure.rows or []:
            if name not in labels:
                yield from _unknown(f"figure {figure.name}: {name} is not a row", name, names)
    for evolution in study.evolutions:
        if evolution.less is not None:
            yield from _unknown(
                f"figure {evolution.name}: less is not a row", evolution.less, names
            )
        yield from _find_in_cell(study, evolution.name, evolution.cell)
    for drawn in study.figures:
        if isinstance(drawn, CostSpec):
            yield from _find_in_cell(study, drawn.name, drawn.cell)
        else:
            yield from _find_in_curve(study, drawn)


def _unknown(message: str, name: str, known: Collection[str]) -> Iterator[str]:
    """The message and the nearest name, if the name is not known."""
    if name not in known:
        yield f"{message}{nearest(name, known)}"


def _find_in_table(study: StudyDefinition, table: TableSpec, names: list[str]) -> Iterator[str]:
    where = f"table {table.name}"
    for name in [*(table.rows or []), *([table.over] if table.over else [])]:
        yield from _unknown(f"{where}: {name} is not a row", name, names)
    if study.gold is None and DISTANCES & {*table.metrics}:
        yield f"{where}: distances are from a row; say which one with gold"
    for key in study.grid:
        if key not in (POOLED_KEY, table.columns):
            yield f"{where}: grid key {key} is neither its columns nor {POOLED_KEY}"


def _find_in_curve(study: StudyDefinition, figure: FigureSpec) -> Iterator[str]:
    where = f"figure {figure.name}"
    if figure.floor is not None:
        tables = [table.name for table in study.tables]
        for name in (figure.x, figure.floor):
            message = f"{where}: with a floor, x and floor are tables; {name} is none"
            yield from _unknown(message, name, tables)
    elif figure.against is not None:
        scores = [t.metric for t in study.tables if t.columns == figure.x and t.metric is not None]
        message = f"{where}: against needs a table of {figure.against} by {figure.x}"
        yield from _unknown(message, figure.against, scores)


def _find_in_ranks(study: StudyDefinition, ranks: RankSpec) -> Iterator[str]:
    where = f"figure {ranks.name}"
    tables = {table.name: table for table in study.tables}
    yield from _unknown(f"{where}: {ranks.table} is not a table", ranks.table, tables)
    table = tables[ranks.table]
    columns = study.columns(table)
    if ranks.column is not None:
        message = f"{where}: {ranks.column} is not a column of {ranks.table}"
        yield from _unknown(message, ranks.column, columns)
        columns = [ranks.column]
    for column in columns:
        if table.column_direction(column) is None:
            metric = table.column_metric(column)
            yield f"{where}: nobody knows whether more {metric} is better; rank another score"


def _find_in_cell(study: StudyDefinition, figure: str, cell: dict[str, Any]) -> Iterator[str]:
    for key, value in cell.items():
        if value not in study.grid.get(key, []):
            yield f"figure {figure}: cell has {key}={value}, which is not in the grid"


def load_study(name: str) -> StudyDefinition:
    """The study ``conf/study/<name>.yaml``, or the file itself if ``name`` ends in .yaml.

    Raises:
        ConfigError: the file does not exist, or it is not a valid study.
    """
    path = Path(name) if name.endswith(".yaml") else conf_folders.find("study", name)
    if path is None or not path.is_file():
        raise ConfigError(
            f"study {name}: no such study{nearest(name, conf_folders.names('study'))}"
        )
    try:
        with reading(path):
            study = StudyDefinition(**read_yaml(path))
    except ValidationError as error:
        raise ConfigError(f"{path.name}: {describe_mistake(error, StudyDefinition)}") from None
    except TypeError:
        raise ConfigError(f"{path.name}: {NOT_A_MAPPING_MESSAGE}") from None
    printed = {
        row
        for table in study.tables
        if table.published
        for row in load_published(table.published).values
    }
    for row in study.rows:
        if printed and row.published_row is not None and row.published_row not in printed:
            raise ConfigError(
                f"{path.name}: row {row.name}: published_row={row.published_row} is in no table of this study"
                + nearest(row.published_row, printed)
            )
    return study
