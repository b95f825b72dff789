"""Specifications of figures in a study's YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Tag,
    ValidationError,
    model_validator,
)

from runner.disk.inside import inside
from runner.errors import ConfigError, nearest

NOT_A_MAPPING_MESSAGE = "must be a mapping of keys to values"
WRONG = {  # messages by pydantic's type of error
    "too_short": "empty; give at least one entry",
    "missing": "missing; give it a value",
    "model_type": NOT_A_MAPPING_MESSAGE,
    "dict_type": NOT_A_MAPPING_MESSAGE,
}


def _file_name(name: str) -> str:
    """Validate the name of a file of the report."""
    try:
        inside(Path(), name, "name")
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return name


FileName = Annotated[str, AfterValidator(_file_name)]


class StrictModel(BaseModel):
    """A part of a study without additional keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def describe_mistake(error: ValidationError, kind: type[BaseModel]) -> str:
    """Describe the first error in a study's YAML, an unknown key before missing ones.

    All missing keys are listed.  The suggested key may belong to another part of the study.
    """
    errors = sorted(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
    first = errors[0]
    missing = [mistake for mistake in errors if mistake["type"] == first["type"] == "missing"]
    where = ", ".join(".".join(str(p) for p in mistake["loc"]) for mistake in missing or [first])
    message = WRONG.get(first["type"], first["msg"].removeprefix("Value error, "))
    if first["type"] == "extra_forbidden":
        word = str(first["loc"][-1])
        parts = (kind, *StrictModel.__subclasses__(), *FigureOfRows.__subclasses__())
        known_keys = [key for part in parts for key in part.model_fields]
        places = " or ".join(
            name
            for name, field in kind.model_fields.items()
            if any(word in part.model_fields and part.__name__ in repr(field) for part in parts)
        )
        other = f" here, but one of {places}" if places else nearest(word, known_keys)
        message = f"unknown key{other}"
    return f"{where}: {message}" if where else message


class FigureOfRows(StrictModel):
    """A figure of rows of a study."""

    name: FileName
    rows: list[str] | None = None  # names of rows (label, or label and preset); None means all


class FigureSpec(FigureOfRows):
    """Curves of metrics over a grid key, or of a metric over the columns of a table.

    The column headings are then numbers.  A ``floor`` is a table with the same columns and lower
    scores: the band between the two is shaded for each row.  ``against`` draws a frontier: a score
    against another, with a point for each value of the grid key.
    """

    kind: Literal["curve"] = "curve"
    x: str  # grid key or name of a table
    # for a table: another table, with curves that bound the curves of ``x`` from below
    floor: str | None = None
    # for a grid key: score on the horizontal axis, in place of the key's values
    against: str | None = None
    label: str = "training points $N$"  # label of the horizontal axis
    metrics: list[str]


class CostSpec(FigureOfRows):
    """A metric against its cost: a curve over the evaluations of each row, and the Pareto front of
    final scores; two panels for each value of the grid."""

    kind: Literal["cost"]
    metric: str
    # seconds of training without evaluations, or recorded costs, summed over chains, particles and
    # draws
    against: Literal[
        "seconds",
        "steps",
        "densities",
        "gradients",
        "forwards",
        "environment_steps",
        "cpu_seconds",
    ] = "seconds"
    name: FileName = ""  # file name; empty means cost, the metric and the kind of cost
    title: str | None = None  # None means the metric against the kind of cost
    label: str | None = None  # label of the vertical axis; None means the metric
    cell: dict[str, Any] = {}  # grid key -> value that selects the runs

    @model_validator(mode="before")
    @classmethod
    def _name_file(cls, keys: Any) -> Any:
        if (
            not isinstance(keys, dict)
            or keys.get("name")
            or not isinstance(keys.get("metric"), str)
        ):
            return keys
        metric = re.sub(r"[^\w.-]+", "_", keys["metric"])
        return keys | {"name": f"cost_{metric}_{keys.get('against', 'seconds')}"}

    @property
    def metrics(self) -> list[str]:
        """The metric as a list, for uniformity with other figures."""
        return [self.metric]


def _kind_of_figure(figure: Any) -> str:
    """Kind of an entry of ``figures``; default: curve."""
    if isinstance(figure, FigureSpec | CostSpec):
        return figure.kind
    return str((figure.get("kind") if isinstance(figure, dict) else None) or "curve")


# an entry of ``figures``
DrawnFigure = Annotated[
    Annotated[FigureSpec, Tag("curve")] | Annotated[CostSpec, Tag("cost")],
    Discriminator(_kind_of_figure),
]


class EvolutionSpec(FigureOfRows):
    """Metrics of the runs of one cell over evaluations: a line for each replicate, or their mean with
    a band."""

    title: str
    metrics: list[str]
    # steps, or seconds of training without evaluations
    against: Literal["steps", "seconds"] = "steps"
    exact: dict[str, float] = {}  # metric -> true value, if known
    cell: dict[str, Any] = {}  # grid key -> value that selects the runs
    # a line per replicate, or the mean and a central 90 % band
    shows: Literal["replicates", "band"] = "replicates"
    words: dict[str, str] = {}  # metric -> label of its axis
    # label of the horizontal axis; None means iteration, or seconds of training
    label: str | None = None
    known: str = "exact"  # legend entry for the values of ``exact``
    # row subtracted from the others, replicate by replicate; without bands means are drawn
    less: str | None = None

    @model_validator(mode="after")
    def _check_consistency(self) -> EvolutionSpec:
        if self.less is not None and self.against == "seconds":
            raise ValueError(f"figure {self.name}: less compares steps; remove against: seconds")
        for key, named in (("exact", self.exact), ("words", self.words)):
            for name in named:
                if name not in self.metrics:
                    raise ValueError(
                        f"figure {self.name}: {key} has {name}, which is not among the metrics{nearest(name, self.metrics)}"
                    )
        return self


class SpreadSpec(FigureOfRows):
    """Scores of all replicates in tables of the study: a panel for each metric, with a violin or a
    box for each row, side by side for each value of the grid key of the table's columns."""

    title: str
    kind: Literal["violin", "box"] = "violin"
    metrics: list[str]  # each must be in a table
    levels: dict[str, float] = {}  # metric -> dashed line, as 0.9 for coverage of 90 % intervals
    words: dict[str, str] = {}  # metric -> label of its axis
    label: str | None = None  # label of the horizontal axis; None means the grid key's last word


class RankSpec(FigureOfRows):
    """Mean ranks of the rows of a table over its columns, or over the replicates of one or all
    columns, with significant differences."""

    title: str
    table: str
    # blocks of the ranks: columns (such as data sets), replicates of one column, or of all
    blocks: Literal["columns", "replicates", "all"] = "columns"
    column: str | None = None  # column of the ranked replicates
    # test of pairs; wilcoxon with Holm correction
    test: Literal["nemenyi", "wilcoxon"] = "wilcoxon"

    @model_validator(mode="after")
    def _check_consistency(self) -> RankSpec:
        if (self.blocks == "replicates") == (self.column is None):
            raise ValueError(
                f"figure {self.name}: column and blocks: replicates require each other"
            )
        return self


Figure = FigureSpec | CostSpec | EvolutionSpec | SpreadSpec | RankSpec
