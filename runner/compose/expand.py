"""Stage 2, expand: complete a config with every key of every component, without building any.

A key typed ``Attacker``, ``Model``, … holds a component, a key typed ``list[Attacker]`` a list.

A component is written as a name, with all keys from its own YAML, or as
``{name: pgd, steps: 100}``, with some keys changed.  The config of a run holds all nested
components in full, so that its record and its signature describe the whole run.

Declarations of built-in classes are read from the index, so that torch is not imported.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Collection, Iterator
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from components import registry
from components.registry import CHOSEN
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import CONFIG, declaration, read_index
from runner.catalogue.settings import Values
from runner.compose.trust import compute_checksums, refuse_untrusted
from runner.compose.validate import shorten_for_smoke
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError, nearest


def expand(config: Values, explicit: Collection[str], is_smoke: bool) -> tuple[Values, list[str]]:
    """Complete a composed config; keys of the experiment that do not fit a chosen component are
    dropped.

    Args:
        config: the config, with the smoke overrides of a smoke run.
        explicit: keys set on the command line.
        is_smoke: shorten burn-in and thinning.

    Returns:
        The config, and notes for the user about keys left out.

    Raises:
        ConfigError: a component does not exist, or names code or a file that is refused.
    """
    config = parse_keys(config, read_index()[CONFIG], "")
    if isinstance(config.get("budget"), dict):
        config["budget"] = parse_number(config["budget"], "budget", is_integer=True)
    notes: list[str] = []
    for role in CHOSEN:
        if role in explicit and config.get(role) is not None:
            config[role] = _drop_foreign_keys(role, config[role], explicit, notes)
    return fill_in(config, explicit if is_smoke else None), notes


def _drop_foreign_keys(
    role: str, values: Values, explicit: Collection[str], notes: list[str]
) -> Values:
    """Drop keys that the experiment sets for its own component, for a component chosen by the user
    without such keys; a note lists them.  Unknown keys of its own YAML are refused later."""
    name = str(values.get("name"))
    keys = known_keys(role, values, role).keys | component_defaults(role, name).keys()
    foreign = [k for k in values if k not in keys and f"{role}.{k}" not in explicit]
    if foreign:
        notes.append(
            f"{role}={name}: ignoring {', '.join(foreign)} of the experiment, which {name} does not have"
        )
    return {k: v for k, v in values.items() if k not in foreign}


def fill_in(config: Values, smoke_keys: Collection[str] | None) -> Values:
    """Complete the components of a config, with the checksums of the files that they name.

    Args:
        config: the config; the mappings of its components may lack keys of nested components.
        smoke_keys: keys set by the user, for the config of a smoke run.

    Raises:
        ConfigError: a component does not exist, or names code or a file that is refused.
    """
    chosen = {
        role: expand_component(role, config[role], role)
        for role in CHOSEN
        if config.get(role) is not None
    }
    for where, declared, values in [part for item in chosen.items() for part in all_parts(*item)]:
        refuse_untrusted(values, declared.imports, where, config["plugins"])
        values |= compute_checksums(values, declared.reads, where)
    config = config | chosen
    if smoke_keys is not None:
        config = shorten_for_smoke(config, smoke_keys)
    normalised: Values = json.loads(json.dumps(config))
    return normalised


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
    return declaration(role, name, f"{where}={name}")


def expand_component(
    role: str, values: Values, where: str, inherited: Values | None = None
) -> Values:
    """Full mapping of a component and its nested components, with parsed numbers.

    A component class with ``inherited_keys`` passes its own values of these keys to nested
    components that have them.

    Args:
        role: role of the component.
        values: its mapping.
        where: its key in the config.
        inherited: keys of the component that holds it, used with the defaults of its YAML; None if
        ``values`` contains these already.

    Raises:
        ConfigError: a name does not exist, a value is neither a name nor a mapping with a name, or
            a ratio has denominator zero.
    """
    declared = known_keys(role, values, where)
    if inherited is not None:
        shared = {key: value for key, value in inherited.items() if key in declared.keys}
        values = component_defaults(role, values["name"]) | shared | values
    values = parse_keys(values, declared, f"{where}.")
    shared = {key: values[key] for key in declared.inherited_keys if key in values}

    for key, inner in declared.nested_roles.items():
        parts = []
        for path, part in each(values.get(key), f"{where}.{key}"):
            mapping = {"name": part} if isinstance(part, str) else part
            full = None if part is None else expand_component(inner, mapping, path, shared)
            parts.append(full)
        if key in values:
            values[key] = parts if isinstance(values[key], list) else parts[0]
    return values


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


def all_parts(
    role: str, values: Values, where: str = ""
) -> Iterator[tuple[str, ClassDeclaration, Values]]:
    """A component and all nested components: key, declarations and full mapping of each."""
    where = where or role
    declared = known_keys(role, values, where)
    yield where, declared, values
    for key, inner in declared.nested_roles.items():
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


def explain_misplaced(role: str, value: Any) -> str:
    """Error message for a component chosen at run level although its role can only be nested."""
    name = value.get("name", "…") if isinstance(value, dict) else value
    such = registry.ROLES[role].given.format(name)
    return f"{role}={name}: a {role} belongs inside another component; write for instance {such}"
