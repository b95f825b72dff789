"""A study: runs, tables and figures that reproduce something printed.

It is defined in ``conf/study/*.yaml``.

rows     one per line of the table: a model under a preset (experiment and overrides)
grid     keys and values; every combination is run for each row
         (seed: pooled, others: columns)
problems names and overrides: values of the grid key ``problem``
tables   layouts, each with the published table it is compared with; columns are
         values of a grid key, or metrics by name
figures  learning curves; with ``kind: cost`` scores against seconds, steps or gradient
         evaluations
evolutions  metrics from evaluation to evaluation, a line for each replicate or a band
            of them all
spreads  scores of every replicate, a violin or a box for each row
ranks    critical-difference diagrams: rows that differ by their ranks over columns or
         replicates
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from components.metrics.names import ScoreDirection, better
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.disk.yaml_limits import read_yaml
from runner.errors import ConfigError, nearest
from runner.statistics.published import load_published
from runner.study.figure_specs import (
    CostSpec,
    DrawnFigure,
    EvolutionSpec,
    Figure,
    FigureSpec,
    FileName,
    RankSpec,
    SpreadSpec,
    StrictModel,
    allowed_keys_at,
)

# metrics of predictions that two runs have kept
DISTANCES = frozenset({"distance", "distance_mean", "distance_sd", "distance_tv"})
POOLED_KEY = "seed"  # a grid key; its runs are more replicates of the same cell
PROBLEM_KEY = "problem"  # a grid key; each value stands for the overrides of that problem

NOT_A_MAPPING_MESSAGE = "must hold keys and their values"
WRONG = {  # by pydantic's type of a mistake
    "too_short": "there is none; give at least one",
    "missing": "missing; give it a value",
    "model_type": NOT_A_MAPPING_MESSAGE,
    "dict_type": NOT_A_MAPPING_MESSAGE,
}


class Row(StrictModel):
    """One line of the tables."""

    label: str  # as printed
    model: str  # name of the model; also of the published row, unless published_row says otherwise
    # row of the published table, where rows are not models: sgld_r, boston
    published_row: str | None = None
    preset: str  # as published | tuned: which settings
    # for a run with several posteriors, the row's posterior: its scores are metric/part
    part: str | None = None
    experiment: str | None = None  # None: composed by hand from overrides
    overrides: list[str] = []  # as on the command line: model.width=64
    grid: dict[str, list[Any]] | None = None  # in place of the study's
    # grid key -> value -> overrides of these cells only
    cells: dict[str, dict[Any, list[str]]] = {}
    # with --budget more important rows of a study are run first
    importance: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    # of a suite of the arena: what choosing these settings cost, by kind, of a replicate
    tuned: dict[str, float] = {}

    @property
    def name(self) -> str:
        """Unique in a study."""
        return f"{self.label}, {self.preset}" if self.preset else self.label

    @property
    def published_label(self) -> str:
        """Row of the published table that this one is compared with."""
        return self.published_row or self.model


# the statistic in a cell of a table
CENTRES = {"mean": "mean(SE)", "median": "median(interquartile range)"}


class TableSpec(StrictModel):
    """One table of the report."""

    name: FileName
    title: str
    # of scores that have no direction of their own (components.metrics.names)
    better: ScoreDirection | None = None
    # attacker: rows are attackers, for whom a score is the better the worse it is for the victim
    side: Literal["victim", "attacker"] = "victim"
    columns: str | dict[str, str]  # a grid key, or {column as printed: metric}
    metric: str | None = None  # with a grid key: the metric of every cell
    published: str | None = None  # name of the printed table to compare with: conf/published
    # with a grid key: the one column of the published table that all are compared with
    published_column: str | None = None
    rows: list[str] | None = None  # names of the rows shown; None: all
    # the row to divide all scores by, replicate by replicate: ratios are shown
    over: str | None = None
    # statistic over replicates; it decides the number in parentheses
    centre: Literal["mean", "median"] = "mean"
    # why nothing here is comparable with the printed numbers; or by preset of the rows
    not_comparable: str | dict[str, str] | None = None
    # False: print states a value, which ours agrees with or differs from, but cannot beat
    contest: bool = True
    # False: rows of a column are no rivals, as where columns are methods and rows their settings
    bold: bool = True
    # row -> columns with settings chosen in view of the printed number; [] for all columns
    by_construction: dict[str, list[str]] = {}
    digits: NonNegativeInt = 2  # after the point

    @model_validator(mode="after")
    def _check_consistency(self) -> TableSpec:
        if isinstance(self.columns, str) == (self.metric is None):
            raise ValueError(
                f"table {self.name}: columns is a grid key with one metric, or a mapping to metrics"
            )
        directions = {self.score_direction(metric) for metric in self.metrics}
        if (
            self.better is not None
            and len(directions) == 1
            and directions.isdisjoint({self.better, None})
        ):
            raise ValueError(
                f"table {self.name}: better: {self.better}, but {self.metrics[0]} is better "
                f"the {directions.pop()} it is; leave it out"
            )
        return self

    @property
    def metrics(self) -> list[str]:
        """All metrics that it shows."""
        return list(self.columns.values()) if isinstance(self.columns, dict) else [str(self.metric)]

    def find_obstacle(self, row: Row) -> str | None:
        """Why a row is not comparable with the printed numbers; None: it is."""
        if isinstance(self.not_comparable, dict):
            return self.not_comparable.get(row.preset)
        return self.not_comparable

    def is_by_construction(self, row: str, column: str) -> bool:
        """True if settings of this cell were chosen in view of the printed number."""
        columns = self.by_construction.get(row)
        return columns is not None and (not columns or column in columns)

    def column_direction(self, column: str) -> ScoreDirection | None:
        """Direction of a column's score; None if neither side is better.

        ``better`` applies to tables in which no score has a direction of its own; if some score
        has one, ``better`` refers to that score.
        """
        direction = self.score_direction(self.column_metric(column))
        return (
            direction
            if direction is not None or any(better(metric) for metric in self.metrics)
            else self.better
        )

    def score_direction(self, metric: str) -> ScoreDirection | None:
        """A score's own direction, for the side of the rows; None: it has none."""
        direction = better(metric)
        if direction is None or self.side == "victim":
            return direction
        return "lower" if direction == "higher" else "higher"

    def column_metric(self, column: str) -> str:
        """The metric of a column."""
        return self.columns[column] if isinstance(self.columns, dict) else str(self.metric)


class Splits(StrictModel):
    """Splits of one set of rows: replicates share rows, and their SE is corrected."""

    overlapping: Literal[True] = True  # replicates share rows
    # share of the rows that are tested: 0.1 for nine to one
    test_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    # or rows tested, where a grid key (the columns) has the number of training rows
    test_rows: PositiveInt | None = None
    data: list[str] = []  # names of the data that are split; []: all

    @model_validator(mode="after")
    def _check_one(self) -> Splits:
        if (self.test_share is None) == (self.test_rows is None):
            raise ValueError(
                "splits: give test_share, or test_rows where columns are training rows"
            )
        return self

    def overlap(self, column: str) -> float:
        """Test rows over training rows."""
        if self.test_share is not None:
            return self.test_share / (1.0 - self.test_share)
        return float(self.test_rows or 0) / float(column)


def _check_row(where: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise ValueError(f"{where}: {name} is not a row{nearest(name, names)}")


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
    def _cells_exist(self) -> StudyDefinition:
        for row in self.rows:
            grid = self.grid if row.grid is None else row.grid
            for key, values in row.cells.items():
                wrong = [v for v in values if v not in grid.get(key, [])]
                if wrong:
                    raise ValueError(
                        f"row {row.name}: cells has {key}={wrong[0]}, which is not in its grid"
                    )
        return self

    @model_validator(mode="after")
    def _check_consistency(self) -> StudyDefinition:
        names = [row.name for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError(f"rows: {next(n for n in names if names.count(n) > 1)} occurs twice")
        if self.reference is not None:
            _check_row("reference", self.reference, names)
        if self.gold is not None:
            _check_row("gold", self.gold, names)
        for table in self.tables:
            self._check_table(table, names)
        self._check_figures(names)
        return self

    def _check_figures(self, names: list[str]) -> None:
        metrics = [metric for table in self.tables for metric in table.metrics]
        for spread in self.spreads:
            for name in [*spread.metrics, *spread.levels, *spread.words]:
                if name not in metrics:
                    raise ValueError(
                        f"figure {spread.name}: {name} is in no table{nearest(name, metrics)}"
                    )
        for ranks in self.ranks:
            self._check_ranks(ranks)
        figures: list[Figure] = [*self.figures, *self.evolutions, *self.spreads, *self.ranks]
        labels = {row.label for row in self.rows}
        for figure in figures:
            for name in figure.rows or []:
                if name not in labels:
                    _check_row(f"figure {figure.name}", name, names)
        for evolution in self.evolutions:
            self._check_evolution(evolution, names)
        for drawn in self.figures:
            if isinstance(drawn, CostSpec):
                self._check_cell(drawn.name, drawn.cell)
            elif drawn.floor is not None:
                self._check_floor(drawn)
            elif drawn.against is not None:
                self._check_against(drawn)

    def _check_against(self, figure: FigureSpec) -> None:
        scores = [t.metric for t in self.tables if t.columns == figure.x and t.metric is not None]
        if figure.against not in scores:
            near = nearest(str(figure.against), scores)
            raise ValueError(
                f"figure {figure.name}: against needs a table of {figure.against} by {figure.x}{near}"
            )

    def _check_floor(self, figure: FigureSpec) -> None:
        tables = [table.name for table in self.tables]
        for name in (figure.x, figure.floor):
            if name not in tables:
                raise ValueError(
                    f"figure {figure.name}: with a floor, x and floor are tables; {name} is none"
                    f"{nearest(str(name), tables)}"
                )

    def _check_table(self, table: TableSpec, names: list[str]) -> None:
        for name in [*(table.rows or []), *([table.over] if table.over else [])]:
            _check_row(f"table {table.name}", name, names)
        if self.gold is None and DISTANCES & {*table.metrics}:
            raise ValueError(
                f"table {table.name}: distances are from a row; say which one with gold"
            )
        extra = [k for k in self.grid if k not in (POOLED_KEY, table.columns)]
        if extra:
            raise ValueError(
                f"table {table.name}: grid key {extra[0]} is neither its columns nor {POOLED_KEY}"
            )

    def _check_ranks(self, ranks: RankSpec) -> None:
        ranked = next((t for t in self.tables if t.name == ranks.table), None)
        if ranked is None:
            near = nearest(ranks.table, [t.name for t in self.tables])
            raise ValueError(f"figure {ranks.name}: {ranks.table} is not a table{near}")
        columns = self.columns(ranked)
        if ranks.column is not None and ranks.column not in columns:
            near = nearest(ranks.column, columns)
            raise ValueError(
                f"figure {ranks.name}: {ranks.column} is not a column of {ranks.table}{near}"
            )
        for column in columns if ranks.column is None else [ranks.column]:
            if ranked.column_direction(column) is None:
                metric = ranked.column_metric(column)
                raise ValueError(
                    f"figure {ranks.name}: nobody knows whether more {metric} is better; rank another score"
                )

    def _check_evolution(self, evolution: EvolutionSpec, names: list[str]) -> None:
        if evolution.less is not None and evolution.less not in names:
            raise ValueError(
                f"figure {evolution.name}: less is not a row{nearest(evolution.less, names)}"
            )
        self._check_cell(evolution.name, evolution.cell)

    def _check_cell(self, figure: str, cell: dict[str, Any]) -> None:
        for key, value in cell.items():
            if value not in self.grid.get(key, []):
                raise ValueError(
                    f"figure {figure}: cell has {key}={value}, which is not in the grid"
                )

    def overlap(self, column: str, data: str) -> float:
        """Test rows over training rows of overlapping splits; 0: replicates do not overlap."""
        if self.splits is None or (self.splits.data and data not in self.splits.data):
            return 0.0
        return self.splits.overlap(column)

    def rows_of_figure(self, figure: Figure) -> list[Row]:
        """The rows that a figure shows."""
        return [
            r
            for r in self.rows
            if figure.rows is None or r.name in figure.rows or r.label in figure.rows
        ]

    def row_labels(self, figure: Figure) -> tuple[dict[str, str], str]:
        """Label of each row that a figure shows, and the settings of all of them.

        Labels include settings if these differ.
        """
        rows = self.rows_of_figure(figure)
        alike = len({row.preset for row in rows}) == 1
        return {row.name: row.label if alike else row.name for row in rows}, rows[
            0
        ].preset if alike else ""

    def columns(self, table: TableSpec) -> list[str]:
        """Column headings of a table, in order."""
        if isinstance(table.columns, dict):
            return list(table.columns)
        values = list(
            dict.fromkeys(
                v for row in self.rows for v in (row.grid or self.grid).get(table.columns, [])
            )
        )
        # A row with a grid of its own may come first: numbers are sorted, words keep the order of
        # the YAML.
        return [
            str(v)
            for v in (sorted(values) if all(isinstance(v, int | float) for v in values) else values)
        ]


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study before it is composed."""

    row: str
    cell: dict[str, Any]  # grid key -> value
    overrides: list[str]

    @property
    def name(self) -> str:
        """Unique in a study."""
        return " ".join([self.row, *(f"{k.split('.')[-1]}={v}" for k, v in self.cell.items())])


def plan(study: StudyDefinition, extra: list[str]) -> Iterator[PlannedRun]:
    """Every run of a study, column by column, so that a whole column is there before the next
    begins; ``extra`` are overrides of this launch, which have the last word."""
    runs = []
    for row in study.rows:
        grid = study.grid if row.grid is None else row.grid
        for position, values in enumerate(itertools.product(*grid.values())):
            cell = dict(zip(grid, values, strict=True))
            replicates = [] if study.replicates is None else [f"replicates={study.replicates}"]
            problem = study.problems.get(str(cell.get(PROBLEM_KEY)), [])
            cells = [f"{k}={v}" for k, v in cell.items() if not problem or k != PROBLEM_KEY]
            cell_overrides = [o for k, v in cell.items() for o in row.cells.get(k, {}).get(v, [])]
            experiment = [f"+experiment={row.experiment}"] if row.experiment else []
            overrides = [
                *experiment,
                *replicates,
                *study.overrides,
                *problem,
                *row.overrides,
                *cells,
                *cell_overrides,
                *extra,
            ]
            runs.append((position, PlannedRun(row.name, cell, overrides)))
    yield from (run for _, run in sorted(runs, key=lambda r: r[0]))


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


def describe_mistake(error: ValidationError, kind: type[StudyDefinition]) -> str:
    """The first mistake of a study's YAML; a misspelt key before a missing one."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    where = ".".join(str(p) for p in first["loc"])
    message = WRONG.get(first["type"], first["msg"].removeprefix("Value error, "))
    if first["type"] == "extra_forbidden":
        message = "unknown key" + nearest(
            str(first["loc"][-1]), allowed_keys_at(kind, first["loc"][:-1])
        )
    return f"{where}: {message}" if where else message
