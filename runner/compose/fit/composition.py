"""The components of a run, checked together; some can be exchanged to see whether the others would
take them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.contracts.attackers import Evasion, Injection
from components.metrics.names import score_names
from components.registry import CHOSEN
from runner.compose.build import build_component
from runner.compose.draws_kept import check_draws
from runner.compose.fit.pairs import check_data, check_pairs
from runner.compose.fit.replicates import check_side_by_side
from runner.compose.full_config import fill_in
from runner.compose.objectives import check_objective
from runner.compose.parts import all_parts, component_defaults, known_keys
from runner.compose.resolve import ResolvedConfig
from runner.compose.settings import Values
from runner.errors import ConfigError

Parts = dict[str, Any]  # the component of each role, or None


class Composition:
    """Components of a config, each built once.

    Args:
        resolved: the config in full.
    """

    def __init__(self, resolved: ResolvedConfig):
        self.resolved = resolved
        self.values: Values = {role: resolved.config.get(role) for role in CHOSEN}
        self._built: Parts = {}  # by role and mapping

    def build(self, role: str, values: Values) -> Any:
        """The component of a role, checked against the data before it is built.

        Raises:
            ConfigError: it refuses its keys, or cannot use the data.
        """
        own = values[role]
        key = json.dumps([role, own, values["dataset"]], sort_keys=True)
        if key not in self._built:
            if own is not None and role != "dataset":
                check_data(self.build("dataset", values), role, own)
            self._built[key] = None if own is None else build_component(role, own, role)
        return self._built[key]

    def check(self, values: Values) -> Parts:
        """Components that fit each other and the run-level keys.

        Raises:
            ConfigError: naming the key; an ``IncompatibleError`` where another component would do.
        """
        settings = self.resolved.settings
        parts = {role: self.build(role, values) for role in CHOSEN}
        dataset, attacker, inference = (
            parts[role] for role in ("dataset", "attacker", "inference")
        )
        is_attacked = isinstance(attacker, Evasion | Injection)
        check_objective(settings, score_names(dataset.poses(), is_attacked, dataset.target_kind()))
        check_pairs(**parts)
        if settings.side_by_side or inference.variants():
            check_side_by_side(settings.side_by_side, dataset, inference, attacker)
        check_draws(dict(inference), settings)
        return parts

    def component_name_at(self, where: str) -> str | None:
        """The name of the component that a key holds; None: it holds none."""
        holder, key = _find(self.values, where)
        value = holder[key] if holder else None
        name: str | None = value["name"] if isinstance(value, dict) else value
        return name

    def is_valid_with(self, changes: Mapping[str, Any]) -> bool:
        """True if the composition fits with some components or key values replaced.

        A component key may take another name or none; any other key takes a new value.

        A component put in place of a role has its own defaults and those of the keys given that it
        knows.
        """
        settings = self.resolved.settings
        smoke_keys = set(self.resolved.explicit) if settings.smoke else None
        values = copy.deepcopy(self.values)
        try:
            for where, value in changes.items():
                holder, key = _find(values, where)
                is_role = where in CHOSEN and value is not None
                holder[key] = self._replacement_values(where, value) if is_role else value
            values = fill_in(values, settings, smoke_keys)
            for role in CHOSEN:
                if role in changes and values[role] is not None:
                    _refuse_open_keys(role, values[role])
            self.check(values)
        except (ConfigError, ValueError):
            return False
        return True

    def _replacement_values(self, role: str, name: str) -> Values:
        """Mapping of a component in the place of a role's own: its defaults, and what the user or
        the experiment has set that are not the defaults of another."""
        keys = known_keys(role, {"name": name}, role).keys
        given = self.resolved.given.get(role, {})
        others = component_defaults(role, given["name"]) if "name" in given else {}
        own_keys = {k: v for k, v in given.items() if k in keys and others.get(k, ...) != v}
        return component_defaults(role, name) | own_keys | {"name": name}


def _find(values: Values, where: str) -> tuple[Any, Any]:
    """The mapping or list with the last word of a dotted key, and that word as it takes it."""
    holder: Any = None
    node: Any = values
    key: Any = None
    for word in where.split("."):
        holder = node
        key = int(word) if isinstance(node, list) else word
        node = (holder or {}).get(key) if not isinstance(holder, list) else holder[key]
    return holder, key


def _refuse_open_keys(role: str, values: Values) -> None:
    """Refuse a component that needs user input: a value, a file, or an existing folder.

    Raises:
        ConfigError: naming the key.
    """
    for where, _, part in all_parts(role, values):
        for key, value in part.items():
            is_file_open = key == "path" and value is None
            if is_file_open or value == "???" or (key == "folder" and not Path(value).is_dir()):
                raise ConfigError(f"{where}.{key}: has to be given")
