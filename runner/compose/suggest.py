"""Suggestions for incompatible components: settings, names and experiments.

Settings and names are suggested only if the whole composition is valid with them.
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
from runner.catalogue.settings import Values
from runner.compose.check import Composition
from runner.compose.expand import all_parts, component_defaults, fill_in
from runner.compose.pairs import SETTINGS
from runner.compose.validate import check_draws
from runner.disk import conf_folders
from runner.disk.read_yaml import reading, value_at
from runner.errors import ConfigError, UnfitError

LEADS = {
    "inference": "compatible inference methods",
    "model": "compatible models",
    "attacker": "compatible attackers",
    "dataset": "compatible datasets",
}
MOST = 4  # largest number of suggested experiments


def add_suggested_fixes(error: UnfitError, composition: Composition) -> UnfitError:
    """Add tested fixes to an incompatibility error.

    If no component works for the keys of the error, the message suggests another component or an
    experiment.
    """
    words = re.split(SETTINGS, error.fix) if error.fix else []
    # settings without a value are not tried
    changes = {
        key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)
    }
    is_fixed = bool(error.fix) and ("=" not in error.fix or is_valid_with(composition, changes))
    text = f"; set {error.fix}" if is_fixed else ""
    text += "".join(_try_names(composition, key) for key in error.keys)
    return UnfitError(f"{error.problem}{text or _suggest_alternatives(error, composition)}")


def _try_names(composition: Composition, key: str) -> str:
    """Suggest names of components that work for a key; empty if there are none."""
    role = key.partition(".")[0]
    if role != key:
        held = all_parts(role, composition.values[role])
        role = next(declared.role for path, declared, _ in held if path == key)
    names = [name for name in registry.names(role) if name != _component_name_at(composition, key)]
    if role != "dataset":  # skips the many components that do not support the data
        data = composition.build("dataset", composition.values).data_facts()
        names = [name for name in names if not misfit(data, declaration(role, name).requires)]
    names = [name for name in names if is_valid_with(composition, {key: name})]
    return f"; {LEADS.get(key, f'compatible values of {key}')}: {', '.join(names)}" if names else ""


def _suggest_alternatives(error: UnfitError, composition: Composition) -> str:
    """Suggest alternatives if no component works for the keys of an error."""
    attacker = _component_name_at(composition, "attacker")
    if attacker and is_valid_with(composition, {"attacker": None}):
        return f"; remove the attacker ({attacker}) with ~attacker"
    for role in ("inference", "model", "attacker"):
        if role not in error.keys and (text := _try_names(composition, role)):
            return text
    dataset = composition.values["dataset"]["name"]
    if experiments := _find_experiments(dataset):
        return f"; experiments with dataset={dataset}: {', '.join(experiments)}"
    return _try_names(composition, "dataset")


def _find_experiments(dataset: str) -> list[str]:
    """First experiments with a dataset, as overrides."""
    words = []
    for name in conf_folders.names("experiment"):
        file = conf_folders.find("experiment", name)
        assert file is not None
        with reading(file):
            text = file.read_text(encoding="utf-8")
        if re.search(rf"override /dataset: {dataset}\s", text):
            words.append(f"+experiment={name}")
    return words[:MOST]


def _component_name_at(composition: Composition, where: str) -> str | None:
    """Name of the component in a key, or None."""
    value = value_at(composition.values, where)
    name: str | None = value["name"] if isinstance(value, dict) else value
    return name


def is_valid_with(composition: Composition, changes: Mapping[str, Any]) -> bool:
    """True if the composition is valid with some components or key values replaced.

    The key of a component may take another name or None; any other key takes a new value.
    A replacement has its own defaults, and the given keys that it supports.
    """
    resolved = composition.resolved
    values = copy.deepcopy(composition.values)
    try:
        for where, value in changes.items():
            path, _, last = where.rpartition(".")
            holder: Any = value_at(values, path) if path else values
            key = int(last) if isinstance(holder, list) else last
            is_role = where in CHOSEN and value is not None
            holder[key] = _replacement_values(composition, where, value) if is_role else value
        values = fill_in(
            resolved.config | values, resolved.explicit if resolved.settings.smoke else None
        )
        check_draws(values["inference"], resolved.settings)
        for role in CHOSEN:
            if role in changes and values[role] is not None and _needs_input(role, values[role]):
                return False
        composition.check(values)
    except (ConfigError, ValueError):
        return False
    return True


def _replacement_values(composition: Composition, role: str, name: str) -> Values:
    """Mapping of a replacement: its defaults, and the keys that the user or the experiment changed
    from the defaults of the replaced component."""
    keys = declaration(role, name).keys
    given = composition.resolved.given.get(role, {})
    others = component_defaults(role, given["name"]) if "name" in given else {}
    own_keys = {k: v for k, v in given.items() if k in keys and others.get(k, ...) != v}
    return component_defaults(role, name) | own_keys | {"name": name}


def _needs_input(role: str, values: Values) -> bool:
    """True if a component needs user input: a value, a file, or an existing folder."""
    return any(
        value == "???"
        or (key == "path" and value is None)
        or (key == "folder" and not Path(value).is_dir())
        for _, _, part in all_parts(role, values)
        for key, value in part.items()
    )
