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

NOT_A_MAPPING_MESSAGE = "must hold keys and their values"
WRONG = {  # by pydantic's type of a mistake
    "too_short": "there is none; give at least one",
    "missing": "missing; give it a value",
    "model_type": NOT_A_MAPPING_MESSAGE,
    "dict_type": NOT_A_MAPPING_MESSAGE,
}


def _file_name(name: str) -> str:
    """Name of a file of the report, validated."""
    try:
        inside(Path(), name, "name")
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return name


FileName = Annotated[str, AfterValidator(_file_name)]


class StrictModel(BaseModel):
    """A part of a study, which knows its keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def describe_mistake(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first mistake of a study's YAML; a misspelt key before a missing one.

    The nearest key may belong to another part of the study.
    """
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    where = ".".join(str(p) for p in first["loc"])
    message = WRONG.get(first["type"], first["msg"].removeprefix("Value error, "))
    if first["type"] == "extra_forbidden":
        parts = (kind, *StrictModel.__subclasses__(), *FigureOfRows.__subclasses__())
        known = dict.fromkeys(key for part in parts for key in part.model_fields)
        message = f"unknown key{nearest(str(first['loc'][-1]), known)}"
    return f"{where}: {message}" if where else message


class FigureOfRows(StrictModel):
    """A figure of some rows of a study."""

    name: FileName
    rows: list[str] | None = None  # names of the rows shown (label, or label and preset); None: all


class FigureSpec(FigureOfRows):
    """A curve of some metrics over a grid key, or of one over the columns of a table.

    The headings of the columns are then numbers.  A ``floor`` is a table with the same columns and
    lower scores: each row's band between the two is shaded.  ``against`` draws a frontier: one
    score over another, a point for each value of the grid key.
    """

    kind: Literal["curve"] = "curve"
    x: str  # the grid key, or the table's name
    # with a table: name of another one, of which the curves bound those of ``x`` from below
    floor: str | None = None
    # with a grid key: score of the horizontal axis, in place of the key's values
    against: str | None = None
    label: str = "training points $N$"  # of the horizontal axis
    metrics: list[str]


class CostSpec(FigureOfRows):
    """A metric against its cost: a curve for each row over its evaluations, and the Pareto front of
    final scores; a pair of panels for each value of the grid."""

    kind: Literal["cost"]
    metric: str
    # seconds of training, without the time of evaluations; costs that a record counts, all chains,
    # particles and draws together
    against: Literal[
        "seconds",
        "steps",
        "densities",
        "gradients",
        "forwards",
        "environment_steps",
        "cpu_seconds",
    ] = "seconds"
    name: FileName = ""  # of its file; empty: cost, the metric and the kind of cost
    title: str | None = None  # None: the metric against the kind of cost
    label: str | None = None  # of the vertical axis; None: the metric
    cell: dict[str, Any] = {}  # grid key -> value of the runs that are drawn

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
        """The metric, as other figures list theirs."""
        return [self.metric]


def _kind_of_figure(figure: Any) -> str:
    """Kind of an entry of ``figures``: curve unless it names another one."""
    if isinstance(figure, FigureSpec | CostSpec):
        return figure.kind
    return str((figure.get("kind") if isinstance(figure, dict) else None) or "curve")


# an entry of ``figures``
DrawnFigure = Annotated[
    Annotated[FigureSpec, Tag("curve")] | Annotated[CostSpec, Tag("cost")],
    Discriminator(_kind_of_figure),
]


class EvolutionSpec(FigureOfRows):
    """Metrics of the runs of one cell from evaluation to evaluation: a line for each replicate, or
    their mean in a band."""

    title: str
    metrics: list[str]
    # seconds of training, without the time of evaluations
    against: Literal["steps", "seconds"] = "steps"
    exact: dict[str, float] = {}  # metric -> its true value, where that is known
    cell: dict[str, Any] = {}  # grid key -> value of the runs that are drawn
    # a line each, or their mean and where the central 90 % lie
    shows: Literal["replicates", "band"] = "replicates"
    words: dict[str, str] = {}  # metric -> how its axis is called
    label: str | None = None  # of the horizontal axis; None: iteration, or seconds of training
    known: str = "exact"  # the legend's name for the values of ``exact``
    # row that is subtracted from the others, replicate by replicate; without bands means are drawn
    less: str | None = None

    @model_validator(mode="after")
    def _check_consistency(self) -> EvolutionSpec:
        if self.less is not None and self.against == "seconds":
            raise ValueError(
                f"figure {self.name}: less is taken step by step; leave out against: seconds"
            )
        for key, named in (("exact", self.exact), ("words", self.words)):
            for name in named:
                if name not in self.metrics:
                    raise ValueError(
                        f"figure {self.name}: {key} has {name}{nearest(name, self.metrics)}, which is not drawn"
                    )
        return self


class SpreadSpec(FigureOfRows):
    """Scores of every replicate that tables of the study lay out: a panel for each metric, in it a
    violin or a box for each row, side by side for each value of the grid key that is the table's
    columns."""

    title: str
    kind: Literal["violin", "box"] = "violin"
    metrics: list[str]  # each is in a table
    levels: dict[str, float] = {}  # metric -> a dashed line: 0.9 of the coverage of 90 % intervals
    words: dict[str, str] = {}  # metric -> how its axis is called
    label: str | None = None  # of the horizontal axis; None: the grid key's last word


class RankSpec(FigureOfRows):
    """Mean ranks of the rows of a table over its columns, or over the replicates of one or all of
    them, and which differ."""

    title: str
    table: str
    # blocks of the ranks: columns (other data, for example), replicates of one column, or of all
    blocks: Literal["columns", "replicates", "all"] = "columns"
    column: str | None = None  # column with the ranked replicates
    test: Literal["nemenyi", "wilcoxon"] = "wilcoxon"  # of pairs; the second is corrected by Holm

    @model_validator(mode="after")
    def _check_consistency(self) -> RankSpec:
        if (self.blocks == "replicates") == (self.column is None):
            raise ValueError(
                f"figure {self.name}: column goes with blocks: replicates, and they with it"
            )
        return self


Figure = FigureSpec | CostSpec | EvolutionSpec | SpreadSpec | RankSpec
