"""YAML files that cannot be read, in one line for the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from runner.disk.yaml_comments import Loader
from runner.disk.yaml_limits import MAX_VALUES, YamlLimitError, check_file
from runner.errors import ConfigError, display_path

YAML_READ_ERRORS = (yaml.YAMLError, UnicodeDecodeError, OSError)  # errors of reading a YAML file


def _parse(text: str) -> Any:
    return yaml.load(text, Loader=Loader)


def load_untrusted(
    path: Path,
    most: int = MAX_VALUES,
    mend: str = "",
    parse: Callable[[str], Any] = _parse,
) -> Any:
    """Content of a YAML file that somebody else may have written, within the limits.

    Args:
        path: the file.
        most: number of values that are read.
        mend: fix for a file that cannot be read, the end of the message.
        parse: content of the text.

    Raises:
        ConfigError: it cannot be read, or is too large, in one line.
    """
    with reading(path, mend):
        text = check_file(path, most)
        try:
            return parse(text)
        except ValueError as error:  # an impossible date
            raise YamlLimitError(str(error)) from None


@contextmanager
def reading(path: str | Path, mend: str = "") -> Iterator[None]:
    """Context for reading a YAML file.

    Raises:
        ConfigError: it cannot be read, in one line; ``mend`` ends it.
    """
    try:
        yield
    except YAML_READ_ERRORS as error:
        raise ConfigError(describe_read_error(path, error) + mend) from None


def describe_read_error(
    path: str | Path, error: yaml.YAMLError | UnicodeDecodeError | OSError
) -> str:
    """One line for a YAML file that cannot be read, with the line where it breaks."""
    where = display_path(path)
    if isinstance(error, YamlLimitError):
        return f"{where}{f', line {error.line}' if error.line else ''}: {error.problem}"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        return f"{where}{line}: this is no YAML ({error.problem or error.context})"
    if isinstance(error, yaml.YAMLError):
        return f"{where}: this is no YAML ({str(error).splitlines()[0]})"
    if isinstance(error, UnicodeDecodeError):
        return f"{where}: this is no text in UTF-8 (byte {error.start})"
    return f"{where}: cannot be read ({error.strerror or str(error).splitlines()[0]})"
