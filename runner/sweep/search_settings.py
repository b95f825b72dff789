"""Validation of the keys of ``hydra.sweeper`` before any trial."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from components.errors import require_package
from runner.errors import ConfigError
from runner.sweep.objectives import DIRECTION_KEY, DIRECTIONS
from runner.sweep.search_space import PRUNERS, SAMPLERS, SINGLE_OBJECTIVE_SAMPLERS

CHOICES = {"direction": DIRECTIONS, "sampler": SAMPLERS, "pruner": PRUNERS}
LEAST = {"n_trials": 1, "n_jobs": 1, "startup_trials": 1, "reduction": 2}
OPTIONAL = ("direction", "n_jobs")  # keys that may be null


def check_settings(keys: Mapping[str, Any]) -> None:
    """Refuse values out of range and incompatible keys.

    Raises:
        ConfigError: a key is invalid.
    """
    for key in (*CHOICES, *LEAST):
        value = keys[key]
        problem = ""
        if key in CHOICES and value not in CHOICES[key]:
            problem = f"not one of {' | '.join(CHOICES[key])}"
        elif key in LEAST and not (isinstance(value, int) and value >= LEAST[key]):
            problem = f"out of range; must be an integer ≥ {LEAST[key]}"
        if problem and not (value is None and key in OPTIONAL):
            raise ConfigError(f"hydra.sweeper.{key}={value}: {problem}")
    sampler = keys["sampler"]
    if sampler == "cmaes":
        require_package("cmaes", "hydra.sweeper.sampler=cmaes", "sweep")
    if not keys["objectives"]:
        return
    if keys["direction"] is not None:
        raise ConfigError(
            f"{DIRECTION_KEY}={keys['direction']}: conflicts with the directions in hydra.sweeper.objectives; remove it"
        )
    if len(keys["objectives"]) > 1 and sampler in SINGLE_OBJECTIVE_SAMPLERS:
        raise ConfigError(
            f"hydra.sweeper.sampler={sampler}: supports one objective; for several use tpe, gp, qmc or nsgaii"
        )
    if keys["pruner"] != "none":
        raise ConfigError(
            f"hydra.sweeper.pruner={keys['pruner']}: pruning requires a single objective; set hydra.sweeper.pruner=none"
        )


def check_study_name(name: str) -> str:
    """Validate the name of a study, which is also the name of a folder.

    Raises:
        ConfigError: the name has invalid characters.
    """
    if not re.fullmatch(r"[\w.\-]+", name):
        raise ConfigError(
            f"hydra.sweeper.study_name={name}: must consist of letters, digits, dots, dashes and underscores"
        )
    return name
