"""Objective of a search and the rows for its scores, shown before the first trial."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.metrics.names import base_name, score_names
from runner.compose.compose import without_hydra
from runner.errors import ConfigError, nearest
from runner.sweep.objectives import DIRECTION_KEY, Objective, single

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from components.contracts.problems import Kind, Target, Values

# kinds of problems for which ``validation`` can hold out rows
KINDS_WITH_TEST_ROWS = ("supervised", "unlabelled")
VALIDATION_FIX = "set validation=0.2 to use held-out training rows instead"


@dataclass(frozen=True)
class SearchProperties:
    """Properties shared by the trials of a search, from the composition of one of them."""

    kind: Kind
    labels: Target | None  # labels of a supervised problem
    values: Values | None  # values of an unlabelled problem
    provides: Set[str]  # words of the protocols of the method's posteriors
    validation: float | None
    scores: Set[str]  # names of all possible scores; empty if plug-ins may add some

    @property
    def default_objective(self) -> str:
        """Score that is optimised by default."""
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
        """Refuse an objective that the runs of the search do not have.

        Raises:
            ConfigError: an objective is unknown; the message gives the nearest score.
        """
        for objective in objectives:
            name = base_name(objective.metric)
            if self.scores and name not in self.scores:
                near = nearest(name, self.scores)
                raise ConfigError(
                    f"objective={objective.metric}: not a score of {self.kind} problems{near}"
                )

    @property
    def rows(self) -> str:
        """Rows used for the scores, for problems with test rows."""
        if self.kind == "sequence" and "forecasts" in self.provides:
            return "scored on the held-out test times, which a search should not use"
        if self.kind not in KINDS_WITH_TEST_ROWS:
            return ""
        if self.validation is None:
            return f"scored on the TEST rows, which a search should not use; {VALIDATION_FIX}"
        return f"scored on held-out training rows (share {self.validation:g})"


def search_facts(cfg: DictConfig) -> SearchProperties | None:
    """Properties of a trial composed as ``cfg``; None if it is not a run of the runner.

    Raises:
        ConfigError: the config of the trial is invalid.
    """
    from components import registry
    from components.contracts.plugins.protocols import to_word
    from components.contracts.roles import Dataset, Inference
    from runner.compose.check import build_component
    from runner.compose.resolve import resolve

    if "dataset" not in cfg:
        return None
    resolved = resolve(without_hydra(cfg))
    dataset = build_component("dataset", resolved.config["dataset"], "dataset")
    method = registry.get("inference", resolved.config["inference"]["name"])
    assert isinstance(dataset, Dataset)
    assert issubclass(method, Inference)
    settings = resolved.settings
    scores = (
        frozenset[str]() if settings.plugins else score_names(dataset.problem_kind(), attacked=True)
    )
    return SearchProperties(
        dataset.problem_kind(),
        dataset.target_kind(),
        dataset.value_kind(),
        frozenset(map(to_word, method.provides)),
        settings.validation,
        scores,
    )


def settle_goal(
    composed: DictConfig,
    objectives: Sequence[Objective],
    direction: str | None,
) -> tuple[Sequence[Objective], str | None, list[str]]:
    """Determine the goal of a search from the config of a trial.

    Returns:
        Its objectives, the score optimised without ``objective=``, and lines that describe both.

    Raises:
        ConfigError: the direction of the objective is unknown, or the config is invalid.
    """
    metric: str | None = composed.get("objective")
    default: str | None = None
    mistake: ConfigError | None = None
    try:
        facts = search_facts(composed)
    except ConfigError as error:  # other trials may be valid
        facts = None
        mistake = error
    if not objectives:
        if metric is None and facts is not None:
            metric = default = facts.default_objective
        if metric is None and direction is None:
            raise mistake or ConfigError(
                f"objective: missing; set it to the score to optimise, or set {DIRECTION_KEY}=…"
            )
        objectives = [single(metric or "objective", direction)]
    if facts is not None:
        facts.check(objectives)
    return objectives, default, describe_objectives(objectives, default is not None, facts)


def describe_objectives(
    objectives: Sequence[Objective], is_default: bool, facts: SearchProperties | None
) -> list[str]:
    """Lines with objective, direction and rows of the search, then a note for each direction that
    contradicts the direction of its score.
    """
    goals = " and ".join(f"{objective.metric}: {objective.direction}" for objective in objectives)
    kind = "such" if facts is None else facts.kind
    default = f" (default for {kind} problems; set objective= to change it)" if is_default else ""
    rows = f"; {facts.rows}" if facts is not None and facts.rows else ""
    against = [
        f"note     {line}"
        for objective in objectives
        if (line := objective.contradiction) is not None
    ]
    return [f"search   {goals}{default}{rows}", *against]
