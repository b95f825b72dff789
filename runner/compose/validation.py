"""Validation errors of pydantic in the user's terms.

A message gives the key, its value and the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from runner.errors import ConfigError, nearest, similar

LONGEST = 10**20  # largest integer reported with all its digits
B = TypeVar("B", bound=BaseModel)
# by kind of pydantic's error, with the limits of its context
MESSAGES = {
    "greater_than": "out of range, must be > {gt:g}",
    "greater_than_equal": "out of range, must be ≥ {ge:g}",
    "less_than": "out of range, must be < {lt:g}",
    "less_than_equal": "out of range, must be ≤ {le:g}",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a word",
    "list_type": "must be a list [a, b, …]",
    "dict_type": "must be a mapping {{a: b}}",
}


def validate_model(
    build: type[B], values: dict[str, Any], where: str, keys: Iterable[str] | None = None
) -> B:
    """The model that ``values`` of the config's key ``where`` make; ``keys`` are all that may be
    given there.

    Raises:
        ConfigError: of up to three keys, a line each.
    """
    try:
        return build(**values)
    except ValidationError as errors:
        names = [name for name in (build.model_fields if keys is None else keys) if name != "name"]
        complaints: dict[str, str] = {}
        # A union complains once per member: the first line for each key is kept, for a number the
        # line about numbers.
        for error in sorted(errors.errors(), key=_is_literal_error):
            key = str(error["loc"][0]) if error["loc"] else ""
            complaints.setdefault(
                key, _complaint(where, error, names) + _plugin_location(build, error["type"])
            )
        raise ConfigError("\n".join(list(complaints.values())[:3])) from None


def format_yaml_value(value: Any) -> str:
    """A value as YAML has it, long ones cut."""
    if isinstance(value, BaseModel):  # a part, which is built before its owner
        text = str(dict(value).get("name"))
    elif isinstance(value, list):
        text = f"[{', '.join(format_yaml_value(item) for item in value)}]"
    elif isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    else:
        text = f"{value:.3g}" if isinstance(value, int) and abs(value) > LONGEST else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _plugin_location(build: type[BaseModel], kind: str) -> str:
    """Location of a user's class if it, or its YAML, lacks a key; "" for one of ours."""
    fixes = {
        "missing": "add it to its YAML",
        "extra_forbidden": "its YAML and its class must have the same keys",
    }
    if build.__module__.partition(".")[0] in ("components", "runner") or kind not in fixes:
        return ""
    from components.contracts.user_code import format_code_location

    return f" (class {build.__name__}: {format_code_location(build)}; {fixes[kind]})"


def _is_literal_error(error: Mapping[str, Any]) -> bool:
    """True if the error says that a number is not one of some words."""
    return error["type"] == "literal_error" and isinstance(error.get("input"), int | float)


def _complaint(where: str, error: Mapping[str, Any], known: list[str]) -> str:
    """One pydantic error as one line."""
    # Members of a union are not keys: function-after[…], constrained-float, a class.
    path = ".".join(
        str(p) for p in (where, *error["loc"]) if re.fullmatch(r"[^\W\d][\w.]*|\d+", str(p))
    )
    kind = error["type"]
    context = error.get("ctx", {})
    input_value = error.get("input")
    value = format_yaml_value(input_value)
    if kind == "extra_forbidden":
        return f"{path}: unknown key{nearest(str(error['loc'][-1]), known)}"
    if kind == "missing":
        return f"{path}: missing; give it a value"
    if kind == "literal_error":
        expected = [
            w.strip().strip("'") for w in context["expected"].replace(" or ", ", ").split(",")
        ]
        near = similar(input_value, expected) if isinstance(input_value, str) else ""
        return f"{path}={value}: not one of {' | '.join(expected)}{near}"
    if kind == "value_error":  # "key: what is wrong; how to fix it", from a check of one key
        message = str(context["error"])
        if not where:
            return message if message.startswith(path) else f"{path}: {message}"
        return f"{where}.{message}" if message.partition(":")[0] in known else f"{where}: {message}"
    if kind in MESSAGES:
        return f"{path}={value}: {MESSAGES[kind].format(**context)}"
    return f"{path}={value}: {error['msg'][0].lower()}{error['msg'][1:]}"
