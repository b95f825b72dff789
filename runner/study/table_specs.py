"""Specifications of rows, tables and splits in a study's YAML."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from components.metrics.names import ScoreDirection, better
from runner.study.figure_specs import FileName, StrictModel

# metrics of predictions that two runs have kept
DISTANCES = frozenset({"distance", "distance_mean", "distance_sd", "distance_tv"})
POOLED_KEY = "seed"  # a grid key; its runs are more replicates of the same cell
PROBLEM_KEY = "problem"  # a grid key; each value stands for the overrides of that problem


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
    # or the number of test rows; a grid key (the columns) has the number of training rows
    test_rows: PositiveInt | None = None
    pool_rows: PositiveInt | None = None  # and the total number of rows
    data: list[str] = []  # names of the data that are split; []: all

    @model_validator(mode="after")
    def _check_one(self) -> Splits:
        if (self.test_share is None) == (self.test_rows is None):
            raise ValueError(
                "splits: give test_share, or test_rows where columns are training rows"
            )
        if (self.test_rows is None) != (self.pool_rows is None):
            raise ValueError("splits: give test_rows and pool_rows, or neither")
        return self

    def overlap(self, column: str) -> float:
        """ρ/(1 − ρ) for the correlation ρ of two replicates: the share of tested rows (Nadeau and
        Bengio, 2003), or, for sets drawn from a larger pool, the share of it that the larger of both
        sets has; two sets share that many of their rows, which bounds the correlation of scores that
        are sums of what rows contribute."""
        if self.test_share is not None:
            rho = self.test_share
        else:
            rho = max(float(self.test_rows or 0), float(column)) / float(self.pool_rows or 1)
        return rho / (1.0 - rho)
