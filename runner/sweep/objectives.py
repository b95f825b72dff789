"""Objectives of a sweep: one metric, or several simultaneously.

Several are given by ``hydra.sweeper.objectives=[{metric: …, direction: …}, …]``.

The direction of a score follows from its name (``components.metrics.names``), unless
the user gives it.  For several objectives no setting need be the best: the sweep ends
in the settings that no other beats in all of them, the Pareto front.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from components.metrics.names import (
    PROBLEMS,
    ScoreDirection,
    base_name,
    better,
)
from runner.catalogue.settings import OBJECTIVES_KEY as KEY
from runner.catalogue.settings import requested_objectives
from runner.errors import ConfigError, nearest, similar

DIRECTIONS = ("minimize", "maximize")
DIRECTION_KEY = "hydra.sweeper.direction"
TOWARDS: dict[ScoreDirection, str] = {"lower": "minimize", "higher": "maximize"}


@dataclass(frozen=True)
class Objective:
    """One metric and where it should go."""

    metric: str
    direction: str

    def __str__(self) -> str:
        return f"{self.metric} {self.direction}"

    @property
    def contradiction(self) -> str | None:
        """A line about a direction that is not the score's own; None: it is, or the score has
        none."""
        better_side = better(self.metric)
        if better_side is None or TOWARDS[better_side] == self.direction:
            return None
        return f"{self.metric} is better the {better_side} it is, and the search is told to {self.direction} it"


def resolve_direction(metric: str, direction: str | None, where: str, how: str) -> Objective:
    """A metric with the direction that the user gives, or else with its own.

    Raises:
        ConfigError: none is given, and the table of scores has none; ``where`` names the key,
            ``how`` gives a direction.
    """
    better_side = better(metric)
    if direction is not None:
        return Objective(metric, direction)
    if better_side is not None:
        return Objective(metric, TOWARDS[better_side])
    name = base_name(metric)
    if name in PROBLEMS:
        raise ConfigError(
            f"{where}: neither a higher nor a lower {name} is better in itself; say where it should go, {how}"
        )
    near = similar(name, PROBLEMS) or ";"
    raise ConfigError(
        f"{where}: no score of the runner's{near} of one of your own say where it should go, {how}"
    )


def single(objective: str, direction: str | None) -> Objective:
    """The one objective of a search.

    Raises:
        ConfigError: nobody knows whether more of it is better.
    """
    return resolve_direction(
        objective, direction, f"objective={objective}", f"{DIRECTION_KEY}={' or '.join(DIRECTIONS)}"
    )


def _is_objective(entry: object) -> bool:
    return isinstance(entry, dict) and "metric" in entry and entry.keys() <= {"metric", "direction"}


def several(given: Any, objective: str | None) -> list[Objective]:
    """Objectives in ``hydra.sweeper.objectives``.

    Empty: one objective, by ``objective`` and ``hydra.sweeper.direction``.

    Raises:
        ConfigError: it has another form, or the direction of one of them is unknown.
    """
    if given is None:
        return []
    entries = OmegaConf.to_container(given) if isinstance(given, ListConfig | DictConfig) else given
    if not isinstance(entries, list) or not all(map(_is_objective, entries)):
        raise ConfigError(
            f"{KEY}={entries}: write [{{metric: accuracy, direction: maximize}}, {{metric: …, direction: …}}]"
        )
    for one in entries:
        if one.get("direction") not in (None, *DIRECTIONS):
            raise ConfigError(
                f"{KEY}: direction: {one['direction']}: not one of {' | '.join(DIRECTIONS)}"
            )
    names = [str(one["metric"]) for one in entries]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ConfigError(
            f"{KEY}: at least two different metrics; of one, write objective={(names or ['…'])[0]}"
        )
    if objective is not None:
        raise ConfigError(
            f"objective={objective}: {KEY} already says what is optimised; give one of the two"
        )
    hint = f"direction: {' or '.join(DIRECTIONS)}"
    return [
        resolve_direction(str(one["metric"]), one.get("direction"), f"{KEY}: {one['metric']}", hint)
        for one in entries
    ]


def values(result: Mapping[str, Sequence[float]], objective: str | None) -> float | list[float]:
    """Objective values that a job returns to its sweep.

    They are the mean over replicates of ``objective`` (default: the first metric), or of
    each of several.

    Raises:
        ConfigError: the run has no such metric.
    """
    requested = requested_objectives()
    if not (result or requested or objective):  # a run without scores
        return math.nan
    names = requested or [objective or next(iter(result))]
    for name in names:
        if name not in result:
            key = f"{KEY}: {name}" if requested else f"objective={name}"
            raise ConfigError(f"{key}: no such metric{nearest(name, result)}")
    means = [sum(result[name]) / len(result[name]) for name in names]
    return means if requested else means[0]
