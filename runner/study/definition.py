"""A study: runs, tables and figures that reproduce published results.

It is defined in ``conf/study/*.yaml``.

rows     lines of the table: a model under a preset (experiment and overrides)
grid     keys and values; each combination is run for each row (seed: pooled, others: columns)
problems names and overrides: values of the grid key ``problem``
tables   layouts, each with the published table for comparison; columns are values of a
         grid key, or metrics by name
figures  learning curves; with ``kind: cost`` scores against seconds, steps or gradients
evolutions  metrics over evaluations, a line for each replicate or a band for all
spreads  scores of all replicates, a violin or a box for each row
ranks    critical-difference diagrams: rows that differ by their ranks over columns or
         replicates
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, PositiveInt, ValidationError, model_validator

from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
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
    """Content of ``conf/study/<name>.yaml``."""

    name: FileName
    title: str = ""  # in words, heading of the report; empty means the name
    description: str  # sources, data and settings; below the heading
    replicates: PositiveInt | None = None  # for every run; None means each experiment's own
    overrides: list[str] = []  # for every run
    grid: dict[str, list[Any]] = {}  # key -> values; every row runs with each combination
    # name -> overrides of the problem: values of the grid key ``problem``
    problems: dict[str, list[str]] = {}
    # experiment under which all runs are recorded; null: each run's experiment, or the study
    recorded_under: FileName | None = None
    rows: Annotated[list[Row], Field(min_length=1)]
    tables: list[TableSpec]
    figures: list[DrawnFigure] = []
    evolutions: list[EvolutionSpec] = []
    spreads: list[SpreadSpec] = []
    ranks: list[RankSpec] = []
    reference: str | None = None  # row compared with all others, replicate by replicate
    # reference row for the metrics distance, distance_mean, distance_sd and distance_tv
    gold: str | None = None
    # data that each replicate splits differently; null: replicates share no rows
    splits: Splits | None = None
    # random quantities that differ between replicates, in words: heads the page
    draws_anew: str | None = None
    # more important studies are run first (make results-all)
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
        """Figures of all kinds."""
        return [*self.figures, *self.evolutions, *self.spreads, *self.ranks]

    def overlap(self, column: str, data: str) -> float:
        """ρ/(1 − ρ) for the correlation ρ of overlapping splits; 0 without overlap."""
        if self.splits is None or (self.splits.data and data not in self.splits.data):
            return 0.0
        return self.splits.overlap(column)

    def rows_of_figure(self, figure: Figure) -> list[Row]:
        """Rows of a figure."""
        if figure.rows is None:
            return self.rows
        return [row for row in self.rows if not {row.name, row.label}.isdisjoint(figure.rows)]

    def row_labels(self, figure: Figure) -> tuple[dict[str, str], str]:
        """Label of each row of a figure, and the settings shared by all rows.

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
        # numbers are sorted, because a row with its own grid may come first; words keep the order
        # of the YAML
        if all(isinstance(value, int | float) for value in values):
            values.sort()
        return [str(value) for value in values]


Definition = TypeVar("Definition", bound=StudyDefinition)
# message about an unknown name ``{}``; names in the study; known names
Reference = tuple[str, Iterable[str | None], Collection[str]]


def _list_references(study: StudyDefinition) -> Iterator[Reference]:
    """References of a study to rows and metrics."""
    rows = [row.name for row in study.rows]
    labels = [row.label for row in study.rows]
    metrics = [metric for table in study.tables for metric in table.metrics]
    yield "reference: {} is not a row", [study.reference], rows
    yield "gold: {} is not a row", [study.gold], rows
    for table in study.tables:
        yield f"table {table.name}: {{}} is not a row", [*(table.rows or []), table.over], rows
    for spread in study.spreads:
        shown = [*spread.metrics, *spread.levels, *spread.words]
        yield f"figure {spread.name}: {{}} is in no table", shown, metrics
    for figure in study.all_figures:
        yield f"figure {figure.name}: {{}} is not a row", figure.rows or [], [*rows, *labels]
    for evolution in study.evolutions:
        yield f"figure {evolution.name}: less is not a row", [evolution.less], rows


def _list_table_references(study: StudyDefinition) -> Iterator[Reference]:
    """References of figures to tables, and to their columns and metrics."""
    tables = {table.name: table for table in study.tables}
    for ranks in study.ranks:
        where = f"figure {ranks.name}: {{}} is not a"
        yield f"{where} table", [ranks.table], tables
        columns = study.columns(tables[ranks.table])
        yield f"{where} column of {ranks.table}", [ranks.column], columns
    for curve in study.figures:
        if isinstance(curve, CostSpec):
            continue
        where = f"figure {curve.name}:"
        if curve.floor is not None:
            message = f"{where} {{}} is not a table, as required for x and floor"
            yield message, [curve.x, curve.floor], tables
        else:
            scores = [t.metric for t in study.tables if t.columns == curve.x and t.metric]
            yield (
                f"{where} against={{}} requires a table by {curve.x}",
                [curve.against],
                scores,
            )


def _find_problems(study: StudyDefinition) -> Iterator[str]:
    """Error messages for a study."""
    for message, given, known_names in chain(
        _list_references(study), _list_table_references(study)
    ):
        for name in given:
            if name is not None and name not in known_names:
                yield message.replace("{}", name) + nearest(name, known_names)
    yield from _find_in_rows(study)
    for table in study.tables:
        yield from _find_in_table(study, table)
    for figure in [*study.evolutions, *study.figures]:
        for key, value in () if isinstance(figure, FigureSpec) else figure.cell.items():
            if value not in study.grid.get(key, []):
                yield f"figure {figure.name}: cell has {key}={value}, which is not in the grid"


def _find_in_rows(study: StudyDefinition) -> Iterator[str]:
    names = [row.name for row in study.rows]
    for row in study.rows:
        grid = study.grid if row.grid is None else row.grid
        for key, values in row.cells.items():
            for value in values:
                if value not in grid.get(key, []):
                    yield f"row {row.name}: cells has {key}={value}, which is not in its grid"
        if names.count(row.name) > 1:
            yield f"rows: {row.name} occurs twice"


def _find_in_table(study: StudyDefinition, table: TableSpec) -> Iterator[str]:
    where = f"table {table.name}"
    if study.gold is None and DISTANCES & {*table.metrics}:
        yield f"{where}: distances require a reference row; set gold"
    for key in study.grid:
        if key not in (POOLED_KEY, table.columns):
            yield f"{where}: grid key {key} is neither its columns nor {POOLED_KEY}"
    for ranks in study.ranks:
        if ranks.table != table.name:
            continue
        for column in study.columns(table) if ranks.column is None else [ranks.column]:
            if table.column_direction(column) is None:
                metric = table.column_metric(column)
                yield f"figure {ranks.name}: {metric} has no direction (higher or lower is better); rank another score"


def build_definition(definition: type[Definition], keys: Any, file: str) -> Definition:
    """The study with the keys of a file.

    Raises:
        ConfigError: a key or a value is invalid.
    """
    try:
        return definition(**keys)
    except ValidationError as error:
        raise ConfigError(f"{file}: {describe_mistake(error, definition)}") from None
    except TypeError:
        raise ConfigError(f"{file}: {NOT_A_MAPPING_MESSAGE}") from None


def load_study(name: str) -> StudyDefinition:
    """Load the study ``conf/study/<name>.yaml``, or the file ``name`` if it ends in .yaml.

    Raises:
        ConfigError: the file does not exist or is not a valid study.
    """
    path = Path(name) if name.endswith(".yaml") else conf_folders.find("study", name)
    if path is None or not path.is_file():
        raise ConfigError(
            f"study {name}: no such study{nearest(name, conf_folders.names('study'))}"
        )
    study = build_definition(StudyDefinition, load_untrusted(path), path.name)
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
