"""Checks of a component without running it: docstring, YAML, types of keys, error messages.

Each function returns its result in words or raises ``NonConformanceError``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from components import registry
from components.contracts.plugins.declared import check_declared
from components.contracts.user_code import format_code_location, is_user_file
from runner.catalogue.declarations import declaration
from runner.catalogue.list_and_show import explain_keys, find_file, read_keys
from runner.compose.check import build_component
from runner.compose.expand import component_defaults, expand_component
from runner.conformance.outcomes import CheckedComponent, NonConformanceError
from runner.disk.yaml_comments import YamlKey
from runner.errors import ConfigError, display_path, first_line

SHORTEST_SENTENCE = 10  # characters
NOT_GIVEN = "???"  # value of a key that the user must set
UNKNOWN_KEY = "no_such_key"
# Values of every type: each key must refuse at least one of them.
ANY_VALUES: tuple[object, ...] = (
    "no such value",
    [["no such value"]],
    {"no": {"such": "value"}},
    -7.25,
)
EVERY_KEY = "*"


def check_declarations(component: CheckedComponent) -> str:
    """Check the base class, methods and class variables of the role."""
    check_declared(component.role, component.name, component.cls)
    return f"{component.cls.__name__} has the methods and class variables of its role"


def check_docstring(component: CheckedComponent) -> str:
    """Check that the docstring has a sentence and a source."""
    place = format_code_location(component.cls)
    sentence, source = registry.parse_docstring(component.cls.__doc__)
    if not vars(component.cls).get("__doc__"):
        raise NonConformanceError(
            f"{component.cls.__name__} has no docstring; write a sentence and 'Source: …' ({place})"
        )
    if len(sentence) <= SHORTEST_SENTENCE:
        raise NonConformanceError(
            f"the docstring begins with {sentence!r}; begin with one complete sentence ({place})"
        )
    if not source:
        raise NonConformanceError(f"the docstring has no source; end it with 'Source: …' ({place})")
    return sentence


def check_keys(component: CheckedComponent) -> str:
    """Check that YAML and class have the same keys, with comments and types, and valid defaults."""
    role = component.role
    name = component.name
    cls = component.cls
    path = find_file(role, name)
    if not path.is_file():
        raise NonConformanceError(
            f"conf/{role}/{name}.yaml not found; create it, and add --config-dir conf"
        )
    _check_fields(cls)
    file = display_path(path)
    yaml_keys, values = read_keys(path)
    values = values if isinstance(values, dict) else {}
    if values.get("name") != name:
        raise NonConformanceError(f"{file}: name is {values.get('name')!r}, but must be {name}")
    expected = cls.yaml_keys()  # type: ignore[attr-defined]
    if lacking := sorted(expected - values.keys()):
        raise NonConformanceError(f"{file}: lacks {', '.join(lacking)}, which the class has")
    if unknown := sorted(values.keys() - expected):
        raise NonConformanceError(f"{file}: {', '.join(unknown)}: unknown keys of the class")
    if uncommented := _find_uncommented(role, name, yaml_keys):
        raise NonConformanceError(f"{file}: {uncommented} has no comment; add its meaning and unit")
    is_given = NOT_GIVEN not in values.values()
    if is_given and (why := _refusal(role, component_defaults(role, name))):
        raise NonConformanceError(f"{file}: {why}")
    return f"{_count_keys(len(expected) - 1)} with types, comments and defaults"


def _find_uncommented(role: str, name: str, keys: list[YamlKey]) -> str | None:
    """First key with no comment in the YAML or in a shared class."""
    bare = [key for key in keys if not key.comment and key.path != "name"]
    if not bare:
        return None
    explained = explain_keys(bare, declaration(role, name))
    return next((key.path for key in explained if not key.comment), None)


def _count_keys(number: int) -> str:
    return f"{number} key{'' if number == 1 else 's'}"


def _check_fields(cls: type) -> None:
    """Check that each key has a type and no default in the class."""
    assert issubclass(cls, BaseModel)
    for key, field in cls.model_fields.items():
        place = format_code_location(cls)
        if field.annotation in (Any, object):
            raise NonConformanceError(
                f"{key} has the type Any; declare a type, such as PositiveFloat ({place})"
            )
        if not field.is_required():
            raise NonConformanceError(
                f"{key} has a default in the class; move it to the YAML ({place})"
            )


def check_keys_are_used(component: CheckedComponent) -> str:
    """Check that each key is read in the source of its class, base classes or their modules."""
    cls = component.cls
    assert issubclass(cls, BaseModel)
    reads = set[str]()
    for module in {base.__module__ for base in cls.__mro__}:
        reads |= set(_reads_of_module(module))
    keys = [key for key in cls.model_fields if key != "name"]
    if EVERY_KEY in reads:
        return "keys are read together"
    for key in keys:
        if key not in reads:
            raise NonConformanceError(
                f"{key} is never read, so its value has no effect; use it or remove it "
                f"({format_code_location(cls)})"
            )
    return f"read: {', '.join(keys)}" if keys else "no keys"


def _reads_of_module(name: str) -> Iterator[str]:
    """Attributes and strings read in a module of the user or of ``components``.

    Includes ``EVERY_KEY`` if the module reads all keys together.
    """
    file = vars(sys.modules[name]).get("__file__") or ""
    is_user = bool(file) and is_user_file(file)
    if not (is_user or name.startswith("components.")):
        return
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if is_user and isinstance(node, ast.Call) and _reads_every_key(node):
            yield EVERY_KEY


def _reads_every_key(call: ast.Call) -> bool:
    """True for ``self.model_dump()``, ``dict(self)`` and ``vars(self)``."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr == "model_dump"
    given = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
    return isinstance(call.func, ast.Name) and call.func.id in ("dict", "vars") and "self" in given


def check_refusals(component: CheckedComponent) -> str:
    """Check that errors for unknown keys and invalid values name the key."""
    role = component.role
    cls = component.cls
    defaults = component_defaults(role, component.name)
    if open_keys := [key for key, value in defaults.items() if value == NOT_GIVEN]:
        return f"skipped: no default for {', '.join(open_keys)}"
    keys = [key for key in cls.yaml_keys() if key != "name"]  # type: ignore[attr-defined]
    refused = {UNKNOWN_KEY: [_refusal(role, defaults | {UNKNOWN_KEY: 1})]}
    for key in sorted(keys):
        refused[key] = [_refusal(role, defaults | {key: value}) for value in ANY_VALUES]
    for key, messages in refused.items():
        named = [message for message in messages if message]
        if not named:
            raise NonConformanceError(
                f"{key} accepts any value, even strings and mappings; narrow its type "
                f"({format_code_location(cls)})"
            )
        for message in named:
            if key not in message:
                raise NonConformanceError(
                    f"an invalid value of {key} gives the error '{message}'; name the key in it "
                    f"({format_code_location(cls)})"
                )
    return (
        f"errors for an unknown key and for invalid values of {_count_keys(len(keys))} name the key"
    )


def _refusal(role: str, values: dict[str, Any]) -> str:
    """Error message for the values; empty if they are accepted."""
    try:
        build_component(role, expand_component(role, dict(values), role), role)
    except ConfigError as error:
        return first_line(error)
    return ""


SOURCE_CHECKS: dict[str, Callable[[CheckedComponent], str]] = {
    "declarations": check_declarations,
    "docstring": check_docstring,
    "keys": check_keys,
    "keys are used": check_keys_are_used,
    "refusals": check_refusals,
}
