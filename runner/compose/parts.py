"""Components inside components: a key typed ``Attacker``, ``Model``, … holds one, a key typed ``list[Attacker]`` several.

Written as a name, which takes every key from that component's own YAML, or as ``{name: pgd, steps: 100}``, which changes
some.  The config of a run holds them in full, so that its record and its signature say all of what was run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from omegaconf import OmegaConf

from components import registry
from components.contracts import roles
from components.contracts.roles import Component, Evasion
from runner import CONF
from runner.mistakes import ConfigError, nearest

ROLE_OF: dict[type, str] = {vars(roles)[base]: role for role, facts in registry.ROLES.items() for base in facts.bases}


def component_class(role: str, values: Any, where: str) -> Any:
    """The class that ``name`` of a component's mapping stands for.

    Raises:
        ConfigError: there is no name, or no component of that name.
    """
    if not isinstance(values, dict) or "name" not in values:
        raise ConfigError(f"{where}: must be chosen by name{nearest(str(values), registry.names(role))}")
    try:
        return registry.get(role, values["name"])
    except registry.UnknownComponent as error:
        raise ConfigError(f"{where}={error.name}: no such {role}{nearest(error.name, error.names)}") from None


@cache
def held_roles(cls: Any) -> dict[str, str]:
    """Keys of a class that hold components, and their role."""

    def role(annotation: Any) -> str | None:
        """Of a base class, of a union or list of them, or of what a base class is narrowed to (``Model[P, M]``)."""
        bases = annotation.__mro__ if isinstance(annotation, type) else ()
        found = [ROLE_OF.get(base) for base in bases] + [role(a) for a in get_args(annotation)]
        return next((r for r in found if r), None)

    return {key: found for key, field in cls.model_fields.items() if (found := role(field.annotation))}


def filled(role: str, values: dict[str, Any], where: str) -> dict[str, Any]:
    """A component's mapping, with those inside it in full.

    A component whose class ``shares`` keys gives its own values of these to those inside it that have such a key.

    Raises:
        ConfigError: a name that does not exist, or something that is neither a name nor a mapping with one.
    """
    cls = component_class(role, values, where)
    shared = {key: values[key] for key in cls.shares if key in values}

    def one(inner: str, value: Any, path: str) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            return [one(inner, v, f"{path}.{i}") for i, v in enumerate(value)]
        given = {"name": value} if isinstance(value, str) else value
        known = component_class(inner, given, path).yaml_keys()
        file = CONF / inner / f"{given['name']}.yaml"
        defaults: Any = OmegaConf.to_container(OmegaConf.load(file)) if file.exists() else {}
        return filled(inner, defaults | {k: v for k, v in shared.items() if k in known} | given, path)

    return values | {k: one(r, values[k], f"{where}.{k}") for k, r in held_roles(cls).items() if k in values}


def built(role: str, values: dict[str, Any], where: str, validated: Any) -> Any:
    """A component from its full mapping, those inside it built first; ``validated(cls, values, where)`` builds one.

    The keys of the threat that it is evaluated under are the run's: they are checked here, and it has none of them.

    Raises:
        ConfigError: what is wrong with its keys.
    """
    return _with_grid(role, values, where, validated)[0]


def _with_grid(role: str, values: dict[str, Any], where: str, validated: Any) -> tuple[Any, Any]:
    """``built``, and the sizes beside an evasion attacker's own keys (None: it is no such attacker)."""
    cls = component_class(role, values, where)
    grids: list[tuple[str, Any]] = []  # of the attackers inside it, by name

    def one(inner: str, value: Any, path: str) -> Any:
        if isinstance(value, list):
            return [one(inner, v, f"{path}.{i}") for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        part, grid = _with_grid(inner, value, path, validated)
        if grid is not None:
            grids.append((value["name"], grid))
        return part

    held = {k: one(r, values[k], f"{where}.{k}") for k, r in held_roles(cls).items() if k in values}
    own = {k: v for k, v in (values | held).items() if k not in cls.threat_keys}
    if not issubclass(cls, Evasion):
        return validated(cls, own, where), None
    from components.evaluation.threat import foreign_sizes, grid_of

    threat = {k: v for k, v in values.items() if k in cls.threat_keys}
    grid, attacker = _all_valid([(grid_of(cls), threat), (cls, own)], where, validated)
    if cls.one_threat and (told := foreign_sizes(grid, grids)):
        raise ConfigError(f"{where}.{told}")
    return attacker, grid


def _all_valid(parts: list[tuple[Any, dict[str, Any]]], where: str, validated: Any) -> list[Any]:
    """Each class built from its part of one mapping.

    Raises:
        ConfigError: the first three complaints about all of them."""
    made, complaints = [], []
    for cls, values in parts:
        try:
            made.append(validated(cls, values, where))
        except ConfigError as error:
            complaints += str(error).splitlines()
    if complaints:
        raise ConfigError("\n".join(complaints[:3]))
    return made


def names_inside(role: str, values: dict[str, Any], where: str) -> Iterator[tuple[str, str, str]]:
    """Every component inside a full mapping: the key that holds it, its role and its name."""
    for key, inner in held_roles(component_class(role, values, where)).items():
        for path, part in _held(values.get(key), f"{where}.{key}"):
            if isinstance(part, dict):
                yield path, inner, part["name"]
                yield from names_inside(inner, part, path)


def inside(component: Component, where: str) -> Iterator[tuple[str, Component, Component]]:
    """Every component inside one: the key that holds it, itself, and the one that it is a part of."""
    for key in held_roles(type(component)):
        for path, part in _held(getattr(component, key), f"{where}.{key}"):
            if part is not None:
                yield path, part, component
                yield from inside(part, path)


def _held(value: Any, where: str) -> list[tuple[str, Any]]:
    """What a key holds, one part or a list of them, each with its path."""
    return [(f"{where}.{i}", part) for i, part in enumerate(value)] if isinstance(value, list) else [(where, value)]
