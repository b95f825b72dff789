"""Numbers of a config: ratios such as ``8/255``, and integers written as ``1e3``."""

from __future__ import annotations

import math
from typing import Any

from runner.catalogue.class_declaration import ClassDeclaration
from runner.compose.hydra.guard import leaves
from runner.compose.settings import Values
from runner.compose.validation import format_yaml_value
from runner.errors import ConfigError

LARGEST = 2**63 - 1  # of an integer that torch and the record keep


def parse_keys(values: Values, declared: ClassDeclaration, where: str) -> Values:
    """A mapping in which ratios are numbers and every integer is written as one.

    Args:
        declared: says which keys hold numbers, and which of them integers.
        where: begins the names of keys in messages.

    Raises:
        ConfigError: a ratio is divided by zero.
    """
    result = dict(values)
    for key, value in values.items():
        if key in declared.numbers:
            result[key] = parse_ratio(value, f"{where}{key}")
        if key in declared.integers:
            result[key] = parse_integer(result[key])
    return result


def parse_integer(value: Any) -> Any:
    """A number that is written as ``1e3`` where an integer is required; anything else as it is."""
    if isinstance(value, list):
        return [parse_integer(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_ratio(value: Any, where: str) -> Any:
    """A number that is written as a ratio, ``8/255``, also inside lists and mappings; anything
    else as it is.

    Raises:
        ConfigError: it is divided by zero.
    """
    if isinstance(value, list):
        return [parse_ratio(v, f"{where}.{i}") for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {k: parse_ratio(v, f"{where}.{k}") for k, v in value.items()}
    if not isinstance(value, str) or value.count("/") != 1:
        return value
    try:
        above, below = map(float, value.split("/"))
    except ValueError:
        return value
    if below == 0:
        raise ConfigError(
            f"{where}={value}: is divided by zero; write a number, such as 0.03 or 8/255"
        )
    return above / below if math.isfinite(above / below) else value


def refuse_large(config: Values) -> None:
    """Refuses integers that no count and no seed of 64 bits can be.

    Raises:
        ConfigError: naming the key.
    """
    for path, value in leaves(config):
        if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
            raise ConfigError(
                f"{path}={format_yaml_value(value)}: too large, must be at most 2^63 - 1 = {LARGEST}"
            )
