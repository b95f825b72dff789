"""Identity of a search: the same command continues it, another command begins a new one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.compose.objectives import Objective
from runner.compose.settings import signed_overrides

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Facts = dict[str, Any]


def build_study_facts(
    fixed: list[str], space: Mapping[str, BaseDistribution], objectives: Sequence[Objective]
) -> Facts:
    """Overrides of all trials, what is searched, and where to."""
    return {
        "fixed": sorted(signed_overrides(fixed)),
        "space": {key: str(value) for key, value in sorted(space.items())},
        "direction": [str(one) for one in objectives],
    }


def upgrade_study_facts(attributes: Mapping[str, Any], default: Facts) -> Facts:
    """Facts that a study began with, in today's format.

    Older facts of a single objective had only the direction.
    """
    facts: Facts = attributes.get("facts", default)
    if isinstance(facts["direction"], str) and attributes.get("objectives", ["objective"]) != [
        "objective"
    ]:
        return facts | {"direction": [f"{attributes['objectives'][0]} {facts['direction']}"]}
    return facts


def name_of(facts: Facts) -> str:
    """Name of a search composed by hand, without an experiment; unique to its command."""
    return f"custom_{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]}"


def apart(before: Facts, now: Facts) -> str:
    """The first fact that changed, and how: "fixed (it had steps=100)"."""
    name = next(key for key in now if before[key] != now[key])
    was = before[name]
    new = now[name]
    if isinstance(was, dict) and isinstance(new, dict):
        was = [f"{k}={v}" for k, v in was.items()]
        new = [f"{k}={v}" for k, v in new.items()]
    if not isinstance(was, list) or not isinstance(new, list):
        return f"{name} (it had {was})"
    gone = [word for word in was if word not in new]
    came = [word for word in new if word not in was]
    return f"{name} (it had {', '.join(gone)})" if gone else f"{name} (it had no {', '.join(came)})"
