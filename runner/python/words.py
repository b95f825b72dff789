"""Keywords of Python as the words of a command line, so that a run has one identity whoever asked
for it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from os import PathLike, fspath

from components import registry
from components.registry import CHOSEN
from runner.catalogue.parts import component_defaults, known_keys
from runner.disk.yaml_limits import YamlLimitError, check_values
from runner.errors import ConfigError

# Text that Hydra's grammar reads as a string without quotes, and not as a number or another kind of
# word.
_PLAIN_WORD_PATTERN = re.compile(
    r"(?!(?:true|false|null|nan|[+-]?inf)$)[A-Za-z_][\w.-]*", re.IGNORECASE
)


def words_of(keys: Mapping[str, object]) -> list[str]:
    """``steps=100``, ``model=bnn`` and ``model.widths=[50]`` of ``{"steps": 100, "model": {"name":
    "bnn", "widths": [50]}}``.

    Raises:
        ConfigError: a value that no YAML holds, or more of them than a file may hold.
    """
    refuse_too_large(keys)
    named = {role: keys.get(role) for role in CHOSEN}
    names = {r: one.get("name") if isinstance(one, Mapping) else one for r, one in named.items()}
    chosen = {role: name for role, name in names.items() if isinstance(name, str)}
    return [f"{key}={to_override(value, key)}" for key, value in flat(keys, chosen)]


def refuse_too_large(keys: Mapping[str, object]) -> None:
    """Refuses dicts and lists beyond the limits of YAML that others wrote.

    Raises:
        ConfigError: naming the key.
    """
    for key, value in keys.items():
        try:
            check_values(value)
        except YamlLimitError as error:
            raise ConfigError(f"{key}: {error}") from None


def is_one_value(path: str, chosen: Mapping[str, str]) -> bool:
    """True if a key of a component holds a mapping of the user's own: nothing, or an empty one,
    lies there by default, and no component does.  Below any other mapping single keys can be
    set."""
    role, *keys = path.split(".")
    if role not in CHOSEN or not keys:
        return False
    names = [chosen[role]] if role in chosen else sorted(registry.names(role))
    defaults = []
    for name in names:
        if registry.file(role, name) is None:
            continue  # of a plug-in, which is not imported yet
        node: object = component_defaults(role, name)
        for key in keys[:-1]:
            node = node.get(key) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and keys[-1] in node:
            holds_part = keys[0] in known_keys(role, {"name": name}, role).holds
            defaults.append(not holds_part and (node[keys[-1]] is None or node[keys[-1]] == {}))
    return bool(defaults) and all(defaults)


def flat(
    keys: Mapping[str, object], chosen: Mapping[str, str] | None = None, above: str = ""
) -> Iterator[tuple[str, object]]:
    """Dotted keys and their values.

    The name of a component is the value of the key that holds it, and comes first.

    Args:
        keys: the requested keys.
        chosen: the component of each role that is named; None: ``keys`` are a whole config
            and every key of it is a row.
        above: the key that holds ``keys``, with a dot behind it.

    Raises:
        ConfigError: a key that is not a word.
    """
    for key, value in keys.items():
        if not isinstance(key, str):
            raise ConfigError(f"{above}{key}: a key is a word, not {type(key).__name__}")
        path = f"{above}{key}"
        is_leaf = chosen is not None and isinstance(value, Mapping) and is_one_value(path, chosen)
        if isinstance(value, Mapping) and value and not is_leaf:
            if "name" in value:
                yield path, value["name"]
            yield from flat({k: v for k, v in value.items() if k != "name"}, chosen, f"{path}.")
        else:
            yield path, value


def to_override(value: object, key: str) -> str:
    """A value in Hydra's override grammar.

    Raises:
        ConfigError: the value has no such form; the message names its ``key``.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | PathLike):
        text = str(fspath(value))
        if _PLAIN_WORD_PATTERN.fullmatch(text):
            return text
        # a backslash counts only before a quote
        escaped = re.sub(r"(\\+)(?='|$)", r"\1\1", text).replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{to_override(v, f'{key}.{k}')}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ",".join(to_override(v, f"{key}.{i}") for i, v in enumerate(value)) + "]"
    raise ConfigError(
        f"{key}: {type(value).__name__} is nothing that a config holds; give numbers, words, lists or dicts"
    )
