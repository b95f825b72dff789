"""What a sweep optimises: one metric, or several at once, ``hydra.sweeper.objectives=[{metric: …, direction: …}, …]``.

Of several no setting need be the best: the sweep ends in those that no other beats in all of them, the Pareto front."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from runner.mistakes import ConfigError, nearest

DIRECTIONS = ("minimize", "maximize")
METRICS = "RUNNER_OBJECTIVES"  # metrics of several objectives, for the job: separated by |
KEY = "hydra.sweeper.objectives"


@dataclass(frozen=True)
class Objective:
    """One metric and where it should go."""

    metric: str
    direction: str

    def __str__(self) -> str:
        return f"{self.metric} {self.direction}"


def several(given: Any, objective: str | None) -> list[Objective]:
    """What ``hydra.sweeper.objectives`` holds; empty: one objective, by ``objective`` and ``hydra.sweeper.direction``.

    Raises:
        ConfigError: it is written otherwise.
    """
    if given is None:
        return []
    held = OmegaConf.to_container(given) if isinstance(given, ListConfig | DictConfig) else given
    if not isinstance(held, list) or not all(
        isinstance(one, dict) and set(one) == {"metric", "direction"} for one in held
    ):
        raise ConfigError(
            f"{KEY}={held}: write [{{metric: accuracy, direction: maximize}}, {{metric: …, direction: …}}]"
        )
    for one in held:
        if one["direction"] not in DIRECTIONS:
            raise ConfigError(f"{KEY}: direction: {one['direction']}: not one of {' | '.join(DIRECTIONS)}")
    names = [str(one["metric"]) for one in held]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"{KEY}: at least two different metrics; of one, write objective={(names or ['…'])[0]}")
    if objective is not None:
        raise ConfigError(f"objective={objective}: {KEY} already says what is optimised; give one of the two")
    return [Objective(str(one["metric"]), one["direction"]) for one in held]


def asked_for() -> list[str]:
    """The metrics of several objectives that a sweep wants of this job."""
    told = os.environ.get(METRICS)
    return told.split("|") if told else []


def values(result: Mapping[str, Sequence[float]], objective: str | None) -> float | list[float]:
    """What a job hands back to its sweep: the mean over replicates of ``objective`` (default: the first metric), or of
    each of several.

    Raises:
        ConfigError: the run has no such metric.
    """
    told = asked_for()
    names = told or [objective or next(iter(result))]
    for name in names:
        if name not in result:
            key = f"{KEY}: {name}" if told else f"objective={name}"
            raise ConfigError(f"{key}: no such metric{nearest(name, result)}")
    means = [sum(result[name]) / len(result[name]) for name in names]
    return means if told else means[0]
