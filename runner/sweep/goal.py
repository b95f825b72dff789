"""Objective of a search and the rows that it uses.

They are shown in the search's first line, before any trial.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from components.metrics.names import base_name, score_names
from runner.compose.compose import without_hydra
from runner.errors import ConfigError, nearest
from runner.sweep.objectives import DIRECTION_KEY, Objective, single

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from components.contracts.problems import Kind, Target, Values

# kinds of problems where ``validation`` can hold rows out
KINDS_WITH_TEST_ROWS = ("supervised", "unlabelled")
MEND = "validation=0.2 searches on training rows held out instead"


@dataclass(frozen=True)
class SearchProperties:
    """Properties that the trials of a search share, from the composition of one of them."""

    kind: Kind
    labels: Target | None  # of a supervised problem
    values: Values | None  # of an unlabelled one
    provides: Set[str]  # words of the protocols of the method's posteriors
    validation: float | None
    scores: Set[str]  # names of all that such runs may have; empty: plug-ins may have others

    @property
    def default_objective(self) -> str:
        """The score that is followed where the user names none."""
        if self.kind == "supervised":
            return "nlpp" if self.labels == "real" else "accuracy"
        if self.kind == "unlabelled":
            counted = self.values == "count"
            return (
                "nlpp" if "predicts_rows" in self.provides else "perplexity" if counted else "nelbo"
            )
        if self.kind == "sequence":
            return "log_score" if "forecasts" in self.provides else "nmse"
        return "reward" if self.kind == "game" else "ksd"

    def check(self, objectives: Sequence[Objective]) -> None:
        """Refuses an objective that no run of the search can have.

        Raises:
            ConfigError: with the nearest that exists.
        """
        for one in objectives:
            name = base_name(one.metric)
            if self.scores and name not in self.scores:
                near = nearest(name, self.scores)
                raise ConfigError(
                    f"objective={one.metric}: no score of a {self.kind} problem{near}"
                )

    @property
    def rows(self) -> str:
        """The rows that scores are of, where a search should be told from a test."""
        if self.kind == "sequence" and "forecasts" in self.provides:
            return "scored on the times put aside for testing, which no search should look at"
        if self.kind not in KINDS_WITH_TEST_ROWS:
            return ""
        if self.validation is None:
            return f"scored on the TEST rows, which no search should look at: {MEND}"
        return f"scored on {self.validation:g} of the training rows, held out"


def search_facts(cfg: DictConfig) -> SearchProperties | None:
    """The facts of a trial composed as ``cfg``; None: it is no run of the runner's.

    Raises:
        ConfigError: the trial is a mistake.
    """
    from components import registry
    from components.contracts.plugins.protocols import to_word
    from components.contracts.roles import Dataset, Inference
    from runner.compose.check import build_component
    from runner.compose.validate import resolve

    if "dataset" not in cfg:
        return None
    resolved = resolve(without_hydra(cfg))
    dataset = build_component("dataset", resolved.config["dataset"], "dataset")
    method = registry.get("inference", resolved.config["inference"]["name"])
    assert isinstance(dataset, Dataset)
    assert issubclass(method, Inference)
    settings = resolved.settings
    scores = frozenset[str]() if settings.plugins else score_names(dataset.poses(), attacked=True)
    return SearchProperties(
        dataset.poses(),
        dataset.target_kind(),
        dataset.holds(),
        frozenset(map(to_word, method.provides)),
        settings.validation,
        scores,
    )


class Goal(NamedTuple):
    """What a search optimises: ``default`` names the score that is followed without ``objective=``,
    ``lines`` say it all."""

    objectives: Sequence[Objective]
    default: str | None
    lines: list[str]


def settle_goal(
    composed: DictConfig,
    objectives: Sequence[Objective],
    direction: str | None,
) -> Goal:
    """What is optimised, given the config of a trial.

    Raises:
        ConfigError: nobody knows where the objective should go, or the trial, which would
            say so, is a mistake.
    """
    metric: str | None = composed.get("objective")
    default: str | None = None
    mistake: ConfigError | None = None
    try:
        facts = search_facts(composed)
    except ConfigError as error:  # of this trial; others may have none
        facts = None
        mistake = error
    if not objectives:
        if metric is None and facts is not None:
            metric = default = facts.default_objective
        if metric is None and direction is None:
            raise mistake or ConfigError(
                f"objective: not given; name the score that is searched by, or {DIRECTION_KEY}=…"
            )
        objectives = [single(metric or "objective", direction)]
    if facts is not None:
        facts.check(objectives)
    return Goal(objectives, default, describe_objectives(objectives, default is not None, facts))


def describe_objectives(
    objectives: Sequence[Objective], is_default: bool, facts: SearchProperties | None
) -> list[str]:
    """Objective, direction and rows of the search; then each contradictory direction.

    A direction is contradictory if it differs from its score's own.
    """
    goals = " and ".join(f"{one.metric}: {one.direction}" for one in objectives)
    kind = "such" if facts is None else facts.kind
    default = f" (no objective= is given: the default of {kind} problems)" if is_default else ""
    rows = f"; {facts.rows}" if facts is not None and facts.rows else ""
    against = [f"note     {line}" for one in objectives if (line := one.contradiction) is not None]
    return [f"search   {goals}{default}{rows}", *against]
