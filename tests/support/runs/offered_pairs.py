"""Pair checks of components made one by one, with the names that would work."""

from __future__ import annotations

from typing import Any

from components.contracts.attackers import Attacker, Evasion, Injection
from components.contracts.roles import Component, Dataset, Inference, Model
from runner.compose.fit import pairs
from runner.compose.fit.composition import Composition, Values
from runner.compose.fit.incompatible import IncompatibleError
from runner.compose.fit.mends import add_suggested_fixes
from runner.compose.parts import component_defaults


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses parts that do not fit as they are configured, with the names that would work.

    Raises:
        ConfigError: naming the pair.
    """
    parts: dict[str, Component | None] = {
        "dataset": dataset, "model": model, "inference": inference, "attacker": attacker,
    }  # fmt: skip
    values = {role: part and mapping_of(part) for role, part in parts.items()}
    try:
        pairs.check_pairs(dataset, model, inference, attacker)
    except IncompatibleError as error:
        raise add_suggested_fixes(error, Composition(values, parts)) from None


def mapping_of(component: Component) -> Values:
    """The full mapping that makes a component, less what a threat's keys had."""

    def plain(value: Any) -> Any:
        if isinstance(value, Component):
            return mapping_of(value)
        return [plain(v) for v in value] if isinstance(value, list) else value

    values = {key: plain(value) for key, value in component}
    if isinstance(component, Evasion | Injection):
        defaults = component_defaults("attacker", component.name)
        values |= {key: defaults[key] for key in component.threat_keys if key in defaults}
    return values
