"""Nested components.

A key typed ``Attacker``, ``Model``, … holds a component, a key typed ``list[Attacker]`` a list.

A component is written as a name, with all keys from its own YAML, or as
``{name: pgd, steps: 100}``, with some keys changed.  The config of a run holds all nested
components in full, so that its record and its signature describe the whole run.

Declarations of built-in classes are read from the index, so that composing a config does not
import torch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from components import registry
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import declaration
from runner.catalogue.settings import Values
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError, display_path, nearest


def known_keys(role: str, values: Any, where: str) -> ClassDeclaration:
    """Declarations of the class that ``name`` of a component's mapping refers to.

    Raises:
        ConfigError: the name is missing, or the component does not exist.
    """
    if not isinstance(values, dict) or "name" not in values:
        raise ConfigError(
            f"{where}: must be chosen by name{nearest(str(values), registry.names(role))}"
        )
    name = str(values["name"])
    if not registry.exists(role, name):
        if file := conf_folders.find(role, name):
            raise ConfigError(
                f"{where}={name}: {display_path(file)} exists, but its class is not registered; "
                f"name its module with plugins=[…]"
            )
        raise ConfigError(f"{where}={name}: no such {role}{nearest(name, registry.names(role))}")
    if not registry.file(role, name):  # a plug-in, already imported
        from runner.catalogue.class_description import nested_role

        cls = registry.get(role, name)
        if nested_role(cls) != role:
            bases = ", ".join(registry.ROLES[role].bases)
            raise ConfigError(
                f"{where}={name}: {cls.__module__}.{cls.__qualname__} must derive from {bases} to be a {role}"
            )
    return declaration(role, name)


def expand_component(role: str, values: Values, where: str) -> Values:
    """Full mapping of a component and its nested components, with parsed numbers.

    A component class with ``inherited_keys`` passes its own values of these keys to nested
    components that have them.

    Raises:
        ConfigError: a name does not exist, a value is neither a name nor a mapping with a
            name, or a ratio has denominator zero.
    """
    key_facts = known_keys(role, values, where)
    values = parse_keys(values, key_facts, f"{where}.")
    shared = {key: values[key] for key in key_facts.inherited_keys if key in values}

    def one(inner: str, value: Any, path: str) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            return [one(inner, v, f"{path}.{i}") for i, v in enumerate(value)]
        part_values = {"name": value} if isinstance(value, str) else value
        keys = known_keys(inner, part_values, path).keys
        part = (
            component_defaults(inner, part_values["name"])
            | {k: v for k, v in shared.items() if k in keys}
            | part_values
        )
        return expand_component(inner, part, path)

    return values | {
        k: one(r, values[k], f"{where}.{k}") for k, r in key_facts.holds.items() if k in values
    }


def component_defaults(role: str, name: str) -> Values:
    """Content of a component's YAML; empty if it has no YAML."""
    file = conf_folders.find(role, name)
    return {} if file is None else copy.deepcopy(_read_yaml(file, file.stat().st_mtime_ns))


@lru_cache(maxsize=512)
def _read_yaml(file: Path, changed: int) -> Values:
    """Content of a YAML file, cached by its time of change."""
    values = load_untrusted(
        file, parse=lambda text: OmegaConf.to_container(OmegaConf.load(StringIO(text)))
    )
    return values if isinstance(values, dict) else {}


def all_parts(role: str, values: Values, where: str = "") -> Iterator[tuple[str, str, Values]]:
    """A component and all nested components: key, role and full mapping of each."""
    where = where or role
    yield where, role, values
    for key, inner in known_keys(role, values, where).holds.items():
        for path, part in each(values.get(key), f"{where}.{key}"):
            if isinstance(part, dict):
                yield from all_parts(inner, part, path)


def each(value: Any, where: str) -> list[tuple[str, Any]]:
    """Components in a key, one or a list, each with its path."""
    return (
        [(f"{where}.{i}", part) for i, part in enumerate(value)]
        if isinstance(value, list)
        else [(where, value)]
    )


def parse_keys(values: Values, declared: ClassDeclaration, where: str) -> Values:
    """Parse the ratios and integers of a mapping.

    Args:
        declared: declarations, with the keys that hold numbers and integers.
        where: prefix of keys in messages.

    Raises:
        ConfigError: a ratio has denominator zero.
    """
    result = dict(values)
    for key in values.keys() & (declared.numbers | declared.integers):
        is_integer = key in declared.integers
        is_ratio = key in declared.numbers  # other integers may be text
        result[key] = parse_number(values[key], f"{where}{key}", is_integer, is_ratio)
    return result


def parse_number(value: Any, where: str, is_integer: bool, is_ratio: bool = True) -> Any:
    """Parse a ratio, ``8/255``, or an integer such as ``1e3``, also in lists and mappings.

    Other values are returned unchanged.

    Raises:
        ConfigError: a denominator is zero.
    """
    if isinstance(value, list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parsed = {k: parse_number(v, f"{where}.{k}", is_integer, is_ratio) for k, v in items}
        return parsed if isinstance(value, dict) else list(parsed.values())
    if is_ratio and isinstance(value, str) and value.count("/") == 1:
        try:
            above, below = map(float, value.split("/"))
        except ValueError:
            return value
        if below == 0:
            raise ConfigError(
                f"{where}={value}: division by zero; write a number, such as 0.03 or 8/255"
            )
        value = above / below if math.isfinite(above / below) else value
    return int(value) if is_integer and isinstance(value, float) and value.is_integer() else value
