"""Specifications of rows, tables and splits in a study's YAML."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from components.metrics.names import ScoreDirection, better
from runner.study.figure_specs import FileName, StrictModel

# metrics between the predictions of two runs
Grid = dict[str, list[Any]]  # key -> values
DISTANCES = frozenset({"distance", "distance_mean", "distance_sd", "distance_tv"})
POOLED_KEY = "seed"  # grid key for replicates of the same cell
PROBLEM_KEY = "problem"  # grid key for problems with their overrides


class Row(StrictModel):
    """A line of the tables."""

    label: str  # displayed label
    model: str  # name of the model, and of the published row unless published_row is given
    # row of the published table, if rows are not models: sgld_r, boston
    published_row: str | None = None
    preset: str  # settings: as published | tuned
    # for a run with several posteriors, the posterior of the row: its scores are metric/part
    part: str | None = None
    experiment: str | None = None  # None for overrides without an experiment
    overrides: list[str] = []  # as on the command line: model.width=64
    grid: Grid | None = None  # replaces the study's grid
    # grid key -> value -> overrides of these cells only
    cells: dict[str, dict[Any, list[str]]] = {}
    # with --budget more important rows of a study are run first
    importance: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    # in a suite of the arena: cost of tuning these settings, by kind and per replicate
    tuned: dict[str, float] = {}

    @property
    def name(self) -> str:
        """Name, unique in a study."""
        return f"{self.label}, {self.preset}" if self.preset else self.label

    @property
    def published_label(self) -> str:
        """Row of the published table for comparison."""
        return self.published_row or self.model


# statistics in a cell of a table
CENTRES = {"mean": "mean(SE)", "median": "median(interquartile range)"}


class TableSpec(StrictModel):
    """A table of the report."""

    name: FileName
    title: str
    # direction of scores that have none of their own (components.metrics.names)
    better: ScoreDirection | None = None
    # attacker: rows are attackers, for whom scores that are worse for the victim are better
    side: Literal["victim", "attacker"] = "victim"
    columns: str | dict[str, str]  # a grid key, or {column heading: metric}
    metric: str | None = None  # for a grid key: the metric of every cell
    published: str | None = None  # name of the published table for comparison: conf/published
    # for a grid key: the only column of the published table, compared with all columns
    published_column: str | None = None
    rows: list[str] | None = None  # names of rows; None means all
    # row by which all scores are divided, replicate by replicate; the table has ratios
    over: str | None = None
    # statistic over replicates; determines the number in parentheses
    centre: Literal["mean", "median"] = "mean"
    # reason why scores are not comparable with the published numbers; or reasons by preset
    not_comparable: str | dict[str, str] | None = None
    # False if the published number is a value to agree with, not to beat
    contest: bool = True
    # False if rows of a column do not compete, as when columns are methods and rows their settings
    bold: bool = True
    # row -> columns with settings chosen to match the published number; [] for all columns
    by_construction: dict[str, list[str]] = {}
    digits: NonNegativeInt = 2  # decimal places

    @model_validator(mode="after")
    def _check_consistency(self) -> TableSpec:
        if isinstance(self.columns, str) == (self.metric is None):
            raise ValueError(
                f"table {self.name}: columns must be a grid key, with metric, or a mapping to metrics"
            )
        directions = {self.score_direction(metric) for metric in self.metrics}
        if (
            self.better is not None
            and len(directions) == 1
            and directions.isdisjoint({self.better, None})
        ):
            raise ValueError(
                f"table {self.name}: better: {self.better} conflicts with {self.metrics[0]}, for which "
                f"{directions.pop()} is better; remove it"
            )
        return self

    @property
    def metrics(self) -> list[str]:
        """All metrics of the table."""
        return list(self.columns.values()) if isinstance(self.columns, dict) else [str(self.metric)]

    def find_obstacle(self, row: Row) -> str | None:
        """Reason why a row is not comparable with the published numbers, or None."""
        if isinstance(self.not_comparable, dict):
            return self.not_comparable.get(row.preset)
        return self.not_comparable

    def is_by_construction(self, row: str, column: str) -> bool:
        """True if settings of this cell were chosen to match the published number."""
        columns = self.by_construction.get(row)
        return columns is not None and (not columns or column in columns)

    def column_direction(self, column: str) -> ScoreDirection | None:
        """Direction of a column's score; None if neither side is better.

        ``better`` applies to tables in which no score has its own direction; if a score has one,
        ``better`` refers to that score.
        """
        direction = self.score_direction(self.column_metric(column))
        return (
            direction
            if direction is not None or any(better(metric) for metric in self.metrics)
            else self.better
        )

    def score_direction(self, metric: str) -> ScoreDirection | None:
        """Direction of a score from the perspective of the rows, or None."""
        direction = better(metric)
        if direction is None or self.side == "victim":
            return direction
        return "lower" if direction == "higher" else "higher"

    def column_metric(self, column: str) -> str:
        """Metric of a column."""
        return self.columns[column] if isinstance(self.columns, dict) else str(self.metric)


class Splits(StrictModel):
    """Splits of a shared set of rows, for which the SE is corrected."""

    overlapping: Literal[True] = True  # replicates share rows
    # share of test rows, 0.1 for a ratio of nine to one
    test_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    # or the number of test rows, if columns (a grid key) are numbers of training rows
    test_rows: PositiveInt | None = None
    pool_rows: PositiveInt | None = None  # and the total number of rows
    data: list[str] = []  # names of split data sets; []: all

    @model_validator(mode="after")
    def _check_one(self) -> Splits:
        if (self.test_share is None) == (self.test_rows is None):
            raise ValueError(
                "splits: set test_share, or test_rows if columns are numbers of training rows"
            )
        if (self.test_rows is None) != (self.pool_rows is None):
            raise ValueError("splits: test_rows and pool_rows require each other")
        return self

    def overlap(self, column: str) -> float:
        """ρ/(1 − ρ) for the correlation ρ of two replicates.

        ρ is the share of test rows (Nadeau and Bengio, 2003), or, for sets drawn from a larger
        pool, the share of the pool in the larger of both sets.  Two sets have that share of their
        rows in common, which bounds the correlation of scores that are sums over rows."""
        if self.test_share is not None:
            rho = self.test_share
        else:
            rho = max(float(self.test_rows or 0), float(column)) / float(self.pool_rows or 1)
        return rho / (1.0 - rho)
