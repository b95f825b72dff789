"""Suggestions for components that do not fit: settings, names and experiments.

Settings and names are tried on the whole composition, which takes them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from components import registry
from components.contracts.requirements import misfit
from components.registry import CHOSEN
from runner.catalogue.declarations import declaration
from runner.catalogue.parts import all_parts, component_defaults, known_keys
from runner.catalogue.settings import Values
from runner.compose.check import Composition
from runner.compose.expand import fill_in
from runner.compose.pairs import SETTINGS
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.errors import ConfigError, UnfitError

LEADS = {
    "inference": "inference that fits",
    "model": "models that fit",
    "attacker": "attackers that fit",
    "dataset": "datasets that fit",
}
MOST = 4  # experiments that are named


def add_suggested_fixes(error: UnfitError, whole: Composition) -> UnfitError:
    """Incompatibility error with its fixes; each setting and name works in the composition.

    If no name that the error is about works, the message suggests another component, or an
    experiment.
    """
    words = re.split(SETTINGS, error.fix) if error.fix else []
    # those that name no value are not tried
    changes = {
        key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)
    }
    is_fixed = bool(error.fix) and ("=" not in error.fix or is_valid_with(whole, changes))
    text = f"; set {error.fix}" if is_fixed else ""
    text += "".join(_try_names(whole, key) for key in error.keys)
    return UnfitError(f"{error.problem}{text or _suggest_alternatives(error, whole)}")


def _try_names(whole: Composition, key: str) -> str:
    """Names of components that work in the place of a key's; empty if there are none."""
    role = key.partition(".")[0]
    if role != key:
        held = all_parts(role, whole.values[role])
        role = next(inner for path, inner, _ in held if path == key)
    names = [name for name in registry.names(role) if name != _component_name_at(whole, key)]
    if role != "dataset":  # most do not fit the data, which their classes decide
        data = whole.build("dataset", whole.values).data_facts()
        names = [name for name in names if not misfit(data, declaration(role, name).requires)]
    names = [name for name in names if is_valid_with(whole, {key: name})]
    return f"; {LEADS.get(key, f'{key} that would fit')}: {', '.join(names)}" if names else ""


def _suggest_alternatives(error: UnfitError, whole: Composition) -> str:
    """Working alternatives if no name that an error is about works."""
    attacker = _component_name_at(whole, "attacker")
    if attacker and is_valid_with(whole, {"attacker": None}):
        return f"; leave attacker={attacker} out (~attacker)"
    for role in ("inference", "model", "attacker"):
        if role not in error.keys and (text := _try_names(whole, role)):
            return text
    dataset = whole.values["dataset"]["name"]
    if experiments := _find_experiments(dataset):
        return f"; what dataset={dataset} is run with: {', '.join(experiments)}"
    return _try_names(whole, "dataset")


def _find_experiments(dataset: str) -> list[str]:
    """The first experiments that hold a dataset, as they are typed."""
    words = []
    for name in conf_folders.names("experiment"):
        file = conf_folders.find("experiment", name)
        assert file is not None
        with reading(file):
            text = file.read_text(encoding="utf-8")
        if re.search(rf"override /dataset: {dataset}\s", text):
            words.append(f"+experiment={name}")
    return words[:MOST]


def _value_at(values: Any, path: list[str]) -> Any:
    """The value that a key of nested mappings and lists holds."""
    for word in path:
        values = values[int(word) if isinstance(values, list) else word]
    return values


def _component_name_at(whole: Composition, where: str) -> str | None:
    """The name of the component that a key holds; None: it holds none."""
    value = _value_at(whole.values, where.split("."))
    name: str | None = value["name"] if isinstance(value, dict) else value
    return name


def is_valid_with(whole: Composition, changes: Mapping[str, Any]) -> bool:
    """True if the composition fits with some components or key values replaced.

    A component key may take another name or none; any other key takes a new value.

    A component put in place of a role has its own defaults and those of the keys given that it
    knows.
    """
    resolved = whole.resolved
    values = copy.deepcopy(whole.values)
    try:
        for where, value in changes.items():
            *path, last = where.split(".")
            holder = _value_at(values, path)
            key = int(last) if isinstance(holder, list) else last
            is_role = where in CHOSEN and value is not None
            holder[key] = _replacement_values(whole, where, value) if is_role else value
        values = fill_in(
            resolved.config | values, resolved.explicit if resolved.settings.smoke else None
        )
        for role in CHOSEN:
            if role in changes and values[role] is not None:
                _refuse_open_keys(role, values[role])
        whole.check(values)
    except (ConfigError, ValueError):
        return False
    return True


def _replacement_values(whole: Composition, role: str, name: str) -> Values:
    """Mapping of a component in the place of a role's own: its defaults, and what the user or
    the experiment has set that are not the defaults of another."""
    keys = known_keys(role, {"name": name}, role).keys
    given = whole.resolved.given.get(role, {})
    others = component_defaults(role, given["name"]) if "name" in given else {}
    own_keys = {k: v for k, v in given.items() if k in keys and others.get(k, ...) != v}
    return component_defaults(role, name) | own_keys | {"name": name}


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
