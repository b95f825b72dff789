"""Objectives of a sweep: one metric, or several simultaneously.

Several are set by ``hydra.sweeper.objectives=[{metric: …, direction: …}, …]``.

The direction of a score follows from its name (``components.metrics.names``), unless the user sets
it.  The result of a sweep with several objectives is the Pareto front: the settings that no other
setting dominates in all objectives.
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
    """A metric and its direction."""

    metric: str
    direction: str

    def __str__(self) -> str:
        return f"{self.metric} {self.direction}"

    @property
    def contradiction(self) -> str | None:
        """Note about a direction that contradicts the direction of the score, or None."""
        better_side = better(self.metric)
        if better_side is None or TOWARDS[better_side] == self.direction:
            return None
        return (
            f"a {better_side} {self.metric} is better, but the search is set to {self.direction} it"
        )


def resolve_direction(metric: str, direction: str | None, where: str, how: str) -> Objective:
    """Objective with the given direction, or else the direction of the score.

    Raises:
        ConfigError: no direction is known; ``where`` is the key and ``how`` the fix.
    """
    better_side = better(metric)
    if direction is not None:
        return Objective(metric, direction)
    if better_side is not None:
        return Objective(metric, TOWARDS[better_side])
    name = base_name(metric)
    if name in PROBLEMS:
        raise ConfigError(f"{where}: {name} has no default direction; set {how}")
    near = similar(name, PROBLEMS) or ";"
    raise ConfigError(f"{where}: unknown score{near} for a score of your own, set {how}")


def single(objective: str, direction: str | None) -> Objective:
    """Single objective of a search.

    Raises:
        ConfigError: the direction is unknown.
    """
    return resolve_direction(
        objective, direction, f"objective={objective}", f"{DIRECTION_KEY}={' or '.join(DIRECTIONS)}"
    )


def _is_objective(entry: object) -> bool:
    return isinstance(entry, dict) and "metric" in entry and entry.keys() <= {"metric", "direction"}


def several(given: Any, objective: str | None) -> list[Objective]:
    """Objectives in ``hydra.sweeper.objectives``.

    Empty for a single objective, set by ``objective`` and ``hydra.sweeper.direction``.

    Raises:
        ConfigError: the form is invalid, or a direction is unknown.
    """
    if given is None:
        return []
    entries = OmegaConf.to_container(given) if isinstance(given, ListConfig | DictConfig) else given
    if not isinstance(entries, list) or not all(map(_is_objective, entries)):
        raise ConfigError(
            f"{KEY}={entries}: write [{{metric: accuracy, direction: maximize}}, {{metric: …, direction: …}}]"
        )
    for entry in entries:
        if entry.get("direction") not in (None, *DIRECTIONS):
            raise ConfigError(
                f"{KEY}: direction: {entry['direction']}: not one of {' | '.join(DIRECTIONS)}"
            )
    names = [str(entry["metric"]) for entry in entries]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ConfigError(
            f"{KEY}: requires two or more different metrics; for one metric write objective={(names or ['…'])[0]}"
        )
    if objective is not None:
        raise ConfigError(f"objective={objective}: conflicts with {KEY}; remove one of them")
    hint = f"direction: {' or '.join(DIRECTIONS)}"
    return [
        resolve_direction(
            str(entry["metric"]), entry.get("direction"), f"{KEY}: {entry['metric']}", hint
        )
        for entry in entries
    ]


def values(result: Mapping[str, Sequence[float]], objective: str | None) -> float | list[float]:
    """Objective values that a job returns to its sweep.

    The value is the mean over replicates of ``objective`` (default: the first metric), or of each
    of several objectives.

    Raises:
        ConfigError: the run lacks a metric.
    """
    requested = requested_objectives()
    if not (result or requested or objective):  # the run has no scores
        return math.nan
    names = requested or [objective or next(iter(result))]
    for name in names:
        if name not in result:
            key = f"{KEY}: {name}" if requested else f"objective={name}"
            raise ConfigError(f"{key}: unknown metric{nearest(name, result)}")
    means = [sum(result[name]) / len(result[name]) for name in names]
    return means if requested else means[0]
