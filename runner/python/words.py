"""Keywords of Python as the words of a command line, so that a run has one identity whoever asked for it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from os import PathLike, fspath

from runner.mistakes import ConfigError

# What Hydra's grammar reads as a string without quotes, and not as a number or a word of its own.
_PLAIN = re.compile(r"(?!(?:true|false|null|nan|[+-]?inf)$)[A-Za-z_][\w.-]*", re.IGNORECASE)


def words_of(keys: Mapping[str, object]) -> list[str]:
    """``steps=100``, ``model=bnn`` and ``model.widths=[50]`` of ``{"steps": 100, "model": {"name": "bnn", "widths": [50]}}``.

    Raises:
        ConfigError: a value that no YAML holds.
    """
    return [f"{key}={written(value, key)}" for key, value in flat(keys)]


def flat(keys: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Dotted keys and their values; the name of a component is the value of the key that holds it, and comes first.

    Raises:
        ConfigError: a key that is no word."""
    for key, value in keys.items():
        if not isinstance(key, str):
            raise ConfigError(f"{above}{key}: a key is a word, not {type(key).__name__}")
        path = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            if "name" in value:
                yield path, value["name"]
            yield from flat({k: v for k, v in value.items() if k != "name"}, f"{path}.")
        else:
            yield path, value


def written(value: object, key: str) -> str:
    """A value as Hydra's grammar has it.

    Raises:
        ConfigError: it has no such form; ``key`` is whose value it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | PathLike):
        return _quoted(str(fspath(value)))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{written(v, f'{key}.{k}')}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ",".join(written(v, f"{key}.{i}") for i, v in enumerate(value)) + "]"
    raise ConfigError(
        f"{key}: {type(value).__name__} is nothing that a config holds; give numbers, words, lists or dicts"
    )


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = re.sub(r"(\\+)(?='|$)", r"\1\1", text).replace("'", "\\'")  # a backslash counts before a quote alone
    return f"'{escaped}'"
