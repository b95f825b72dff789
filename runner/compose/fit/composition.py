"""The components of a run as one whole, in which some can be exchanged to see whether the others
would take them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any

from components.contracts.roles import Model
from components.registry import CHOSEN
from runner.compose.build import build_component
from runner.compose.fit.attacker_pairs import check_nested_attackers
from runner.compose.fit.pairs import check_pairs
from runner.compose.named_files import note_checksums
from runner.compose.parts import all_parts, component_defaults, expand_component, known_keys
from runner.compose.settings import Values
from runner.errors import ConfigError

Parts = dict[str, Any]  # the component of each role, or None


class Composition:
    """Components, built once, and the checks of all of them together.

    Attributes:
        carried: keys of an experiment, which apply to any component that takes a role's place.
        requested: keys that the user set.
    """

    carried: Mapping[str, Values] = {}
    requested: Mapping[str, Values] = {}

    def __init__(self, values: Values, parts: Parts | None = None):
        self.values = values
        # Methods that ``is_valid_with`` has accepted: whether the run would lack its number of
        # steps.
        self.methods_that_work: dict[str, bool] = {}
        self.built = dict(parts or {})  # components that are already built, by their roles

    def check(self, values: Values, parts: Parts) -> None:
        """Refuse components that do not fit each other.

        Raises:
            ConfigError: naming the key.
        """
        check_pairs(**parts)

    def adjust(self, values: Values) -> Values:
        """The mappings as a mode of the run (smoke) changes them."""
        return values

    def lacks_steps(self, parts: Parts) -> bool:
        """True if a run of some components would not know its number of steps."""
        return False

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

    def is_valid_with(self, changes: Mapping[str, Any], brings: Set[str] = frozenset()) -> bool:
        """True if the composition fits with some components or key values replaced.

        A component key may take another name or none; any other key takes a new value.

        A component put in place of a role has its own defaults and the experiment's keys that
        it knows.  If it knows all of the keys that the user set, it has to fit with these too.
        ``brings``: capabilities that a setting of the model, given only in words, would add.
        """
        parts = self._fitting_parts(changes, brings)
        if parts is not None and self._takes_requested(changes):
            parts = self._fitting_parts(changes, brings, self.requested)
        if parts is None:
            return False
        self.methods_that_work[parts["inference"].name] = self.lacks_steps(parts)
        return True

    def _takes_requested(self, changes: Mapping[str, Any]) -> bool:
        """True if the components put in place of others know all keys that the user set."""
        swapped = [role for role in changes if changes[role] is not None]
        requested = {role: self.requested[role] for role in swapped if self.requested.get(role)}
        return bool(requested) and all(
            keys.keys() <= known_keys(role, {"name": changes[role]}, role).keys
            for role, keys in requested.items()
        )

    def _fitting_parts(
        self,
        changes: Mapping[str, Any],
        brings: Set[str],
        requested: Mapping[str, Values] = MappingProxyType({}),
    ) -> Parts | None:
        """The components of the changed whole; None: they do not fit."""
        try:
            values = self._replace_parts(changes, requested)
            same = {
                role: part
                for role, part in self.built.items()
                if values.get(role) is self.values.get(role)
            }
            parts = Composition(values, same).parts
            if brings:
                parts["model"] = _with_capabilities(parts["model"], brings)
            self.check(values, parts)
        except (ConfigError, ValueError):
            return None
        return parts

    def _replace_parts(self, changes: Mapping[str, Any], requested: Mapping[str, Values]) -> Values:
        values = dict(self.values)
        for where, value in changes.items():
            role, *keys = where.split(".")
            if not keys:
                values[role] = value and self._replacement_values(role, value, requested)
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

    def _replacement_values(self, role: str, name: str, requested: Mapping[str, Values]) -> Values:
        """Full mapping of a component in the place of a role's own.

        Raises:
            ConfigError: the component cannot be configured by its name only.
        """
        keys = known_keys(role, {"name": name}, role).keys
        user_keys = self.carried.get(role, {}) | requested.get(role, {})
        own_keys = {key: value for key, value in user_keys.items() if key in keys}
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


def _with_capabilities(model: Model, brings: Set[str]) -> Model:
    """A model as it would be with settings that bring some capabilities."""

    class Configured(type(model)):  # type: ignore[misc]
        def capabilities(self) -> Set[str]:
            return model.capabilities() | brings

    configured: Model = Configured.model_construct(**dict(model))
    return configured
