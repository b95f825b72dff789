"""Components from their full mappings: those inside them are built first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from components import registry
from components.contracts.attackers import Evasion, Injection
from components.contracts.plugins.calls import is_own_error, watch_class
from components.contracts.plugins.declared import check_declared, is_foreign
from components.contracts.roles import Component
from components.contracts.user_code import is_raised_by_user, refusal
from components.errors import ConfigMismatchError
from components.evaluation.security.threat import Grid, find_size_mismatch, threat_grid_class
from runner.catalogue.class_description import nested_roles
from runner.compose.parts import each, known_keys
from runner.compose.resolve import ResolvedConfig
from runner.compose.settings import Values
from runner.compose.validation import validate_model
from runner.errors import ConfigError


def build_component(role: str, values: Values, where: str) -> Component:
    """A component from its full mapping.

    The keys of the threat that it is evaluated under are the run's: they are checked here, and it
    has none of them.

    Raises:
        ConfigError: what is wrong with its keys.
    """
    return _with_grid(role, values, where)[0]


def _with_grid(role: str, values: Values, where: str) -> tuple[Component, Grid | None]:
    """Result of ``build_component`` and, for an attacker with a threat, its sizes.

    The sizes are the keys next to the attacker's own; None if it has no threat.
    """
    holds = known_keys(role, values, where).holds
    cls: type[Component] = registry.get(role, values["name"])
    if is_foreign(cls):
        cls = _declare(role, values["name"], cls)
    grids: list[tuple[str, Grid]] = []  # of the attackers inside it, by name

    def one(inner: str, value: Any, path: str) -> Any:
        if isinstance(value, list):
            return [one(inner, v, f"{path}.{i}") for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        part, grid = _with_grid(inner, value, path)
        if grid is not None:
            grids.append((value["name"], grid))
        return part

    _refuse_missing_parts(cls, values, where, holds)
    parts = {k: one(r, values[k], f"{where}.{k}") for k, r in holds.items() if k in values}
    options = {k: v for k, v in (values | parts).items() if k not in cls.threat_keys}
    if not issubclass(cls, Evasion | Injection):
        return validate_model(cls, options, where, cls.yaml_keys()), None
    threat = {k: v for k, v in values.items() if k in cls.threat_keys}
    grid = validate_model(threat_grid_class(cls), threat, where, cls.yaml_keys())
    attacker = validate_model(cls, options, where, cls.yaml_keys())
    if cls.one_threat and (message := find_size_mismatch(grid, grids)):
        raise ConfigError(f"{where}.{message}")
    return attacker, grid


def _refuse_missing_parts(
    cls: type[Component], values: Values, where: str, holds: dict[str, str]
) -> None:
    """Refuse a component without a part that it needs.

    Raises:
        ConfigError: naming the key that should hold it.
    """
    for k, inner in holds.items():
        if values.get(k) is None and not _is_optional(cls, k):
            raise ConfigError(
                f"{where}.{k}: {values['name']} needs one; choose it by name, {where}.{k}=… (runner list {inner} names them)"
            )


def _is_optional(cls: type[Component], key: str) -> bool:
    """True if a key of a component may hold nothing."""
    field = cls.model_fields[key]
    return type(None) in get_args(field.annotation) or not field.is_required()


def _declare(role: str, name: str, cls: type[Component]) -> type[Component]:
    """User-defined class with checked declarations, watched methods and old method names.

    Raises:
        ConfigError: a declaration is wrong; the message gives the line of the class.
    """
    try:
        check_declared(role, name, cls)
    except ConfigMismatchError as error:
        raise ConfigError(str(error)) from None
    watched: type[Component] = watch_class(role, cls)
    return watched


def nested_components(component: Component, where: str) -> Iterator[tuple[str, Component]]:
    """The components that one holds itself: the key that holds each, and the component."""
    values = dict(component)
    for key in nested_roles(type(component)):
        yield from (
            (path, part) for path, part in each(values[key], f"{where}.{key}") if part is not None
        )


def of_plugins(error: BaseException, resolved: ResolvedConfig) -> str:
    """One-line message for an error caused by users' code.

    Either users' code raised the error, or ours raised it because of a value from users'
    code.  "" if the run has no users' code or the error says in its own words what is
    wrong.
    """
    if not resolved.settings.plugins or is_own_error(error):
        return ""
    if is_raised_by_user(error):
        return str(refusal(f"plugins={','.join(resolved.settings.plugins)}", error))
    chosen = {
        f"{role}={name}": registry.get(role, name) for role, name in resolved.choice.items() if name
    }
    theirs = {choice: cls for choice, cls in chosen.items() if is_foreign(cls)}
    if not theirs:
        return ""
    what = f"{', '.join(theirs)}: something that it gave does not fit"
    return str(refusal(what, error, list(theirs.values())[-1]))
