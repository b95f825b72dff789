"""Suites: frozen problems, budgets and scores, and the compared rows.

A suite is a study with additional keys in ``conf/arena/<name>.yaml``; the kept scores of its rows
are in ``conf/arena/<name>.csv.gz``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Any

from pydantic import Field, PositiveFloat, model_validator

from components.metrics.names import COST_PREFIX
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError, nearest
from runner.study.definition import StudyDefinition, build_definition
from runner.study.figure_specs import StrictModel
from runner.study.table_specs import DISTANCES, PROBLEM_KEY, Row, TableSpec

GROUP = "arena"  # folder of the suites, and the first word of the experiments of their runs
Share = Annotated[float, Field(ge=0, lt=1)]


class Frontier(StrictModel):
    """Two scores of the tables, plotted against each other in a figure."""

    x: str
    y: str


class Solve(StrictModel):
    """Criterion for a solved problem: its error falls below a tolerance and stays there.

    The first tolerance decides the places; profiles and counts show all of them."""

    metric: str
    tolerances: Annotated[list[PositiveFloat], Field(min_length=1)]


class Suite(StudyDefinition):
    """Content of ``conf/arena/<name>.yaml``."""

    extends: str | None = None  # a suite with the first of its problems, and with its other keys
    measures: str  # in a few words, for the list of suites
    # name -> limits of a replicate: {gradients: 20000}; the first one that is reached ends it
    budgets: dict[str, dict[str, PositiveFloat]] = {}
    # name -> overrides: problems for the choice of settings; no table shows their scores
    validation: dict[str, list[str]] = {}
    warm_up: Share = 0.25  # share of the steps, of methods that have a warm-up or a burn-in
    draws: int = 5000  # most draws of a chain that are kept, of methods that thin
    # labels of the M members of attacker=panel: replicate r meets opponent r mod M
    opponents: list[str] = []
    frontier: Frontier | None = None
    # of suites with a known truth: rows are placed by problems solved and the cost to solve them
    solve: Solve | None = None
    # problem -> norm of its attack, of suites in which attackers are rows
    norms: dict[str, str] = {}
    # where the kept CPU seconds were counted
    machine: str = ""
    # kinds of cost that count, cost/<kind>; null: all
    costs: list[str] | None = None

    @model_validator(mode="after")
    def _check_suite(self) -> Suite:
        if not self.problems:
            raise ValueError("problems: missing; list each as a name with its overrides")
        for table in self.tables:
            if table.columns != PROBLEM_KEY:
                raise ValueError(f"table {table.name}: columns must be {PROBLEM_KEY}")
        first = self.tables[0]
        if first not in self.ranked:
            raise ValueError(
                f"table {first.name}: the direction of {first.metric} is unknown; set better, or put "
                "another table first"
            )
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Suite:
        """Check the names of problems and scores in the other keys."""
        for problem in self.norms.keys() - self.problems.keys():
            raise ValueError(f"norms: {problem} is not a problem{nearest(problem, self.problems)}")
        if self.opponents and (self.replicates or 0) % len(self.opponents):
            raise ValueError(
                f"opponents: {len(self.opponents)} do not share {self.replicates} replicates evenly; "
                "set replicates to a multiple"
            )
        named = [(f"frontier.{axis}", metric) for axis, metric in self.frontier or ()]
        if self.solve:
            named.append(("solve.metric", self.solve.metric))
        for key, metric in named:
            if metric not in self.metrics:
                raise ValueError(f"{key}: {metric} has no table; add one")
        return self

    @property
    def ranked(self) -> list[TableSpec]:
        """Tables by which rows are ranked: tables of scores with a direction (a coverage has none,
        so it is only shown).
        """
        return [table for table in self.tables if table.column_direction(PROBLEM_KEY)]

    @property
    def metrics(self) -> list[str]:
        """Metrics of the tables; the first one determines the leader."""
        return [str(table.metric) for table in self.tables]

    def counts(self, metric: str) -> bool:
        """False for a cost by which rows are not compared."""
        is_score = not metric.startswith(COST_PREFIX)
        return self.costs is None or is_score or metric.removeprefix(COST_PREFIX) in self.costs

    @property
    def experiment(self) -> str:
        """Experiment under which the runs are recorded."""
        return f"{GROUP}.{self.name}"

    def budget(self, name: str | None) -> str:
        """Budget with a given name, by default the first one; empty if the suite has no budgets.

        Raises:
            ConfigError: the budget does not exist.
        """
        if name is not None and name not in self.budgets:
            raise ConfigError(f"--budget {name}: no such budget{nearest(name, self.budgets)}")
        return name or next(iter(self.budgets), "")

    def order_budgets(self, scored: Container[Any]) -> list[str]:
        """Budgets with scores, the longest last."""
        return [name for name in ("", *self.budgets) if name in scored]

    def to_study(self, rows: list[Row]) -> StudyDefinition:
        """Study of the given rows on all problems."""
        keys = {key: getattr(self, key) for key in StudyDefinition.model_fields}
        nothing: dict[str, Any] = {"figures": [], "evolutions": [], "spreads": [], "ranks": []}
        gold = self.gold if self.gold in {row.name for row in rows} else None
        tables = [t for t in self.tables if gold or t.metric not in DISTANCES]
        changes: dict[str, Any] = {"tables": tables, "gold": gold, "reference": None, "rows": rows}
        changes |= {"name": self.experiment, "recorded_under": self.experiment}
        return StudyDefinition(**keys | nothing | changes)


def load_suite(name: str, may_extend: bool = True) -> Suite:
    """Load the suite ``conf/arena/<name>.yaml`` of the runner or of ``--config-dir``.

    Raises:
        ConfigError: the suite does not exist or is invalid.
    """
    path = conf_folders.find(GROUP, name)
    if path is None:
        raise ConfigError(f"arena {name}: no such suite{nearest(name, conf_folders.names(GROUP))}")
    keys = load_untrusted(path)
    if isinstance(keys, dict) and "extends" in keys:
        if not may_extend:
            raise ConfigError(
                f"{path.name}: extends: another suite extends this one; remove extends"
            )
        keys = _inherit(keys)
    return build_definition(Suite, keys, path.name)


def _inherit(keys: dict[str, Any]) -> dict[str, Any]:
    """The keys of a suite, added to the keys of the suite that it extends."""
    base = load_suite(str(keys["extends"]), may_extend=False)
    inherited = base.model_dump(exclude_unset=True)
    # the problems of the base are already a value of its grid
    inherited["grid"] = {k: v for k, v in (base.grid or {}).items() if k != PROBLEM_KEY}
    added = keys.get("problems", {})
    problems = {**base.problems, **added} if isinstance(added, dict) else added
    return inherited | keys | {"problems": problems}
