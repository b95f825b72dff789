"""Nested components.

A key typed ``Attacker``, ``Model``, … holds a component, a key typed ``list[Attacker]`` a list.

A component is written as a name, with all keys from its own YAML, or as
``{name: pgd, steps: 100}``, with some keys changed.  The config of a run holds all nested
components in full, so that its record and its signature describe the whole run.

A key may name a user's file, identified by its checksum, or code, whose module must be in
``plugins``.  Declarations of built-in classes are read from the index, so that composing a config
does not import torch.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
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
from runner.errors import ConfigError, nearest

GAMES_MODULE = "runner.python.games"  # the only built-in module that a dataset may name


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
    role: str,
    values: Values,
    where: str,
    plugins: Collection[str] | None = None,
    inherited: Values | None = None,
) -> Values:
    """Full mapping of a component and its nested components, with parsed numbers.

    A component class with ``inherited_keys`` passes its own values of these keys to nested
    components that have them.

    Args:
        role: role of the component.
        values: its mapping.
        where: its key in the config.
        plugins: modules whose code its keys may name; files that they name get their checksums.
            None if keys that name code or files are not examined.
        inherited: keys of the component that holds it, used with the defaults of its YAML; None if
        ``values`` contains these already.

    Raises:
        ConfigError: a name does not exist, a value is neither a name nor a mapping with a name, a
            ratio has denominator zero, or a key names code or a file that is refused.
    """
    declared = known_keys(role, values, where)
    if inherited is not None:
        shared = {key: value for key, value in inherited.items() if key in declared.keys}
        values = component_defaults(role, values["name"]) | shared | values
    values = parse_keys(values, declared, f"{where}.")
    if plugins is not None:
        _refuse_untrusted(values, declared.imports, where, plugins)
        values |= _checksums(values, declared.reads, where)
    shared = {key: values[key] for key in declared.inherited_keys if key in values}
    for key, inner in declared.nested_roles.items():
        parts = [
            None
            if part is None
            else expand_component(inner, _to_mapping(part), path, plugins, shared)
            for path, part in each(values.get(key), f"{where}.{key}")
        ]
        if key in values:
            values[key] = parts if isinstance(values[key], list) else parts[0]
    return values


def _to_mapping(part: Any) -> Any:
    """Mapping of a component written as its name."""
    return {"name": part} if isinstance(part, str) else part


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
    for key, inner in known_keys(role, values, where).nested_roles.items():
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


def _checksums(values: Values, reads: Mapping[str, str], where: str) -> Values:
    """SHA-256 of each file named in a component's keys, by the key that holds it.

    A config with a checksum, such as the config of a record, requires the file to match it.

    Raises:
        ConfigError: a file does not exist or does not match.
    """
    checksums = {}
    for key, checksum in reads.items():
        expected = values.get(checksum)
        name = values.get(key)
        if name is None:
            if expected is not None:
                raise ConfigError(
                    f"{where}.{checksum}: the checksum has no file; set {where}.{key}=FILE"
                )
            continue
        digest = _sha256(name, f"{where}.{key}")
        if expected is not None and not (
            len(str(expected)) >= 8 and digest.startswith(str(expected))
        ):
            raise ConfigError(
                f"{where}.{key}={name}: has the SHA-256 {digest[:12]}…, but {where}.{checksum} "
                f"requires {str(expected)[:12]}…; restore "
                f"that file, or set {where}.{checksum}=null to use this one"
            )
        checksums[checksum] = digest
    return checksums


def _sha256(name: object, where: str) -> str:
    path = Path(str(name))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        why = (
            "file not found"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(
            f"{where}={name}: {why}; give an absolute path or one relative to {Path.cwd()}"
        ) from None


def _refuse_untrusted(
    values: Values, imports: Collection[str], where: str, plugins: Collection[str]
) -> None:
    """Refuse code named in a component's keys unless its module is in ``plugins`` or is the
    runner's own module of games.

    Raises:
        ConfigError: the code belongs to another module."""
    for key in sorted(imports):
        if values.get(key) is None:
            continue
        module, colon, name = str(values[key]).partition(":")
        if module.endswith(".py"):
            named = f"{Path(module).stem}:{name}" if colon else Path(module).stem
            raise ConfigError(
                f"{where}.{key}={values[key]}: {module} is a file; write the module's name, {where}.{key}={named}, and "
                "add the file's folder to PYTHONPATH"
            )
        parent, _, last = module.rpartition(".")
        if not colon and parent in plugins and module not in plugins:
            raise ConfigError(
                f"{where}.{key}={module}: the name in the module is missing; write {parent}:{last}"
            )
        if module not in (*plugins, GAMES_MODULE):
            raise ConfigError(
                f"{where}.{key}={values[key]}: code outside the runner; add 'plugins=[{module}]' if you trust it"
            )


def explain_misplaced(role: str, value: Any) -> str:
    """Error message for a component chosen at run level although its role can only be nested."""
    name = value.get("name", "…") if isinstance(value, dict) else value
    such = registry.ROLES[role].given.format(name)
    return f"{role}={name}: a {role} belongs inside another component; write for instance {such}"
