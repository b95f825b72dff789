"""Conversion of Python keywords to command-line overrides, so that both give a run the same
identity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from os import PathLike, fspath

from components import registry
from components.registry import CHOSEN
from runner.disk.yaml_limits import YamlLimitError, check_values
from runner.errors import ConfigError
from runner.record.facts import flatten
from runner.terminal.typed_values import format_typed

# Text that Hydra's grammar reads as an unquoted string, not as a number or another type of
# word.
_PLAIN_WORD_PATTERN = re.compile(
    r"(?!(?:true|false|null|nan|[+-]?inf)$)[A-Za-z_][\w.-]*", re.IGNORECASE
)


def words_of(keys: Mapping[str, object]) -> list[str]:
    """Convert ``{"steps": 100, "model": {"name": "bnn", "widths": [50]}}`` to ``steps=100``,
    ``model=bnn`` and ``model.widths=[50]``.

    Raises:
        ConfigError: a value has no YAML form, or the values exceed the limits for files.
    """
    refuse_too_large(keys)
    chosen = {key: name for key, name in flat(keys) if key in CHOSEN and isinstance(name, str)}
    return [f"{key}={to_override(value, key)}" for key, value in flat(keys, chosen)]


def refuse_too_large(keys: Mapping[str, object]) -> None:
    """Refuse dicts and lists beyond the limits for untrusted YAML.

    Raises:
        ConfigError: a value is too large or too deep.
    """
    for key, value in keys.items():
        try:
            check_values(value)
        except YamlLimitError as error:
            raise ConfigError(f"{key}: {error}") from None


def is_one_value(path: str, chosen: Mapping[str, str]) -> bool:
    """True if a key of a component is a free-form mapping: its default is null or empty, and it
    does not hold a component.  In other mappings single keys can be set."""
    from runner.catalogue.declarations import declaration
    from runner.compose.expand import component_defaults

    role, *keys = path.split(".")
    if role not in CHOSEN or not keys:
        return False
    names = [chosen[role]] if role in chosen else sorted(registry.names(role))
    key = ".".join(keys)
    are_free = []
    for name in names:
        if registry.file(role, name) is None:
            continue  # a plug-in that is not imported yet
        holds_part = keys[0] in declaration(role, name).nested_roles
        are_free += [
            other == key and value in (None, {}) and not holds_part
            for other, value in flatten(component_defaults(role, name))
            if f"{other}.".startswith(f"{key}.")
        ]
    return bool(are_free) and all(are_free)


def flat(
    keys: Mapping[str, object], chosen: Mapping[str, str] | None = None, above: str = ""
) -> Iterator[tuple[str, object]]:
    """Dotted keys and their values.

    The name of a component is the value of its role's key, and comes first.

    Args:
        keys: the requested keys.
        chosen: the chosen component of each role; None if ``keys`` are a complete config, in which
            case all keys are listed.
        above: prefix of ``keys``, ending with a dot.

    Raises:
        ConfigError: a key is not a string.
    """
    for key, value in keys.items():
        if not isinstance(key, str):
            raise ConfigError(f"{above}{key}: keys must be strings, not {type(key).__name__}")
        path = f"{above}{key}"
        is_leaf = chosen is not None and isinstance(value, Mapping) and is_one_value(path, chosen)
        if isinstance(value, Mapping) and value and not is_leaf:
            if "name" in value:
                yield path, value["name"]
            yield from flat({k: v for k, v in value.items() if k != "name"}, chosen, f"{path}.")
        else:
            yield path, value


def to_override(value: object, key: str) -> str:
    """Format a value in Hydra's override grammar.

    Raises:
        ConfigError: the value has no such form; the message gives its ``key``.
    """
    if value is None or isinstance(value, bool):
        return format_typed(value)
    if isinstance(value, str | PathLike):
        text = str(fspath(value))
        if _PLAIN_WORD_PATTERN.fullmatch(text):
            return text
        # a backslash is special only before a quote
        escaped = re.sub(r"(\\+)(?='|$)", r"\1\1", text).replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return str(float(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{to_override(v, f'{key}.{k}')}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ",".join(to_override(v, f"{key}.{i}") for i, v in enumerate(value)) + "]"
    raise ConfigError(
        f"{key}: {type(value).__name__} is not a valid type in a config; use numbers, strings, lists or dicts"
    )
