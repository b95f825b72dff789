"""Reading of YAML files, with errors in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from runner.disk.yaml_comments import Loader
from runner.disk.yaml_limits import MAX_VALUES, YamlLimitError, check_file
from runner.errors import ConfigError, display_path, first_line

YAML_READ_ERRORS = (yaml.YAMLError, UnicodeDecodeError, OSError)  # errors of reading a YAML file


def _parse(text: str) -> Any:
    return yaml.load(text, Loader=Loader)


def load_untrusted(
    path: Path,
    most: int = MAX_VALUES,
    fix: str = "",
    parse: Callable[[str], Any] = _parse,
) -> Any:
    """Content of an untrusted YAML file, within the limits.

    Args:
        path: the file.
        most: largest number of values.
        fix: end of the error message, how to fix the file.
        parse: parser of the text.

    Raises:
        ConfigError: the file cannot be read or is too large.
    """
    with reading(path, fix):
        text = check_file(path, most)
        try:
            return parse(text)
        except ValueError as error:  # an invalid date
            raise YamlLimitError(str(error)) from None


@contextmanager
def reading(path: str | Path, fix: str = "") -> Iterator[None]:
    """Context for reading a YAML file.

    Raises:
        ConfigError: the file cannot be read; ``fix`` ends the message.
    """
    try:
        yield
    except YAML_READ_ERRORS as error:
        raise ConfigError(describe_read_error(path, error) + fix) from None


def describe_read_error(
    path: str | Path, error: yaml.YAMLError | UnicodeDecodeError | OSError
) -> str:
    """Describe an error of reading a YAML file in one line, with the number of its line."""
    where = display_path(path)
    if isinstance(error, YamlLimitError):
        return f"{where}{f', line {error.line}' if error.line else ''}: {error.problem}"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        return f"{where}{line}: invalid YAML ({error.problem or error.context})"
    if isinstance(error, yaml.YAMLError):
        return f"{where}: invalid YAML ({first_line(error)})"
    if isinstance(error, UnicodeDecodeError):
        return f"{where}: not UTF-8 text (byte {error.start})"
    return f"{where}: cannot be read ({error.strerror or first_line(error)})"


def value_at(values: Any, path: str) -> Any:
    """Value at a dotted path of nested mappings and lists, or None."""
    for word in path.split("."):
        if isinstance(values, list):
            values = {str(i): value for i, value in enumerate(values)}
        values = values.get(word) if isinstance(values, dict) else None
    return values
