"""The components of a run as one whole, in which some can be exchanged to see whether the others
would take them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from components.registry import CHOSEN
from runner.compose.build import build_component
from runner.compose.fit.attacker_pairs import check_nested_attackers
from runner.compose.fit.pairs import check_pairs
from runner.compose.named_files import note_checksums
from runner.compose.parts import all_parts, component_defaults, expand_component, known_keys
from runner.compose.settings import Values
from runner.errors import ConfigError

Parts = dict[str, Any]  # the component of each role, or None
NOT_GIVEN: Mapping[str, Values] = MappingProxyType({})


class Composition:
    """Components, built once, and the checks of all of them together.

    Args:
        values: the full mapping of each role, or None.
        parts: components that are already built, by their roles.
        given: by role, keys that were set, which apply to any component that takes its place.
    """

    def __init__(
        self, values: Values, parts: Parts | None = None, given: Mapping[str, Values] = NOT_GIVEN
    ):
        self.values = values
        self.built = dict(parts or {})
        self.given = given

    def check(self, values: Values, parts: Parts) -> None:
        """Refuse components that do not fit each other.

        Raises:
            ConfigError: naming the key.
        """
        check_pairs(**parts)

    def adjust(self, values: Values) -> Values:
        """The mappings as a mode of the run (smoke) changes them."""
        return values

    @property
    def parts(self) -> Parts:
        """The component of each role.

        Raises:
            ConfigError: one refuses its keys."""
        for role in CHOSEN:
            self._part(role)
        return self.built

    @property
    def kind(self) -> str:
        """The kind of problem that its dataset loads, also where another part refuses its keys."""
        kind: str = self._part("dataset").poses()
        return kind

    def _part(self, role: str) -> Any:
        if role not in self.built:
            values = self.values.get(role)
            if values is not None:
                check_nested_attackers(role, values, self.values["dataset"]["name"])
            self.built[role] = None if values is None else build_component(role, values, role)
        return self.built[role]

    def component_name_at(self, where: str) -> str | None:
        """The name of the component that a key holds; None: it holds none."""
        holder: Any = self.values
        for key in where.split("."):
            holder = holder[int(key)] if isinstance(holder, list) else (holder or {}).get(key)
        name: str | None = holder["name"] if isinstance(holder, dict) else holder
        return name

    def is_valid_with(self, changes: Mapping[str, Any]) -> bool:
        """True if the composition fits with some components or key values replaced.

        A component key may take another name or none; any other key takes a new value.

        A component put in place of a role has its own defaults and those of the keys given that it
        knows.
        """
        try:
            values = self._replace_parts(changes)
            same = {
                role: part
                for role, part in self.built.items()
                if values.get(role) is self.values.get(role)
            }
            self.check(values, Composition(values, same).parts)
        except (ConfigError, ValueError):
            return False
        return True

    def _replace_parts(self, changes: Mapping[str, Any]) -> Values:
        values = dict(self.values)
        for where, value in changes.items():
            role, *keys = where.split(".")
            if not keys:
                values[role] = value and self._replacement_values(role, value)
                continue
            values[role] = copy.deepcopy(values[role])
            holder: Any = values
            key: str | int = role
            for word in keys:
                holder = holder[key]
                key = int(word) if isinstance(holder, list) else word
            holder[key] = value
            values[role] = expand_component(role, values[role], role)
        adjusted = self.adjust(values)
        # A mapping that nothing changed stays the same object, so that its component is not built
        # again.
        return {
            k: self.values[k] if k in self.values and v == self.values[k] else v
            for k, v in adjusted.items()
        }

    def _replacement_values(self, role: str, name: str) -> Values:
        """Full mapping of a component in the place of a role's own.

        Raises:
            ConfigError: the component cannot be configured by its name only.
        """
        keys = known_keys(role, {"name": name}, role).keys
        own_keys = {key: value for key, value in self.given.get(role, {}).items() if key in keys}
        values = component_defaults(role, name) | own_keys | {"name": name}
        out = expand_component(role, values, role)
        for where, _, part in all_parts(role, out):
            for key, value in part.items():
                if _is_to_be_given(key, value):
                    raise ConfigError(f"{where}.{key}: has to be given")
        note_checksums(role, out)
        return out


def _is_to_be_given(key: str, value: Any) -> bool:
    """True if a key needs user input: a value, a file, or an existing folder."""
    if value == "???" or (key == "path" and value is None):
        return True
    return key == "folder" and not Path(str(value)).is_dir()
