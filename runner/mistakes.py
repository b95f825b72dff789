"""User errors: one or two lines naming the key, the value and the fix, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import yaml

from runner.disk.yaml_limits import YamlLimitError


class RunnerError(Exception):
    """Base of all errors of the runner: one to three lines that name the key and the fix."""


class ConfigError(RunnerError):
    """A mistake in what was asked for, found before any work."""


class RunFailure(RunnerError):
    """A run that cannot go on; what it had done is safe on disk."""


class RunnerWarning(UserWarning):
    """Python form of a message that the command line shows in a panel."""


def nearest(word: str, words: Iterable[str]) -> str:
    """``, did you mean X?`` or, when nothing is near, the words that exist."""
    words = sorted(set(words))
    lower = {name.lower(): name for name in reversed(words)}
    near = get_close_matches(word, words, n=1, cutoff=0.6) or get_close_matches(
        word.lower(), lower, n=1, cutoff=0.6
    )
    if near:
        return f", did you mean {lower.get(near[0], near[0])}?"
    listing = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"; there are: {listing}" if words else ""


def display_path(path: str | Path) -> str:
    """A path as a message has it: from the present folder, where it lies below."""
    within = os.path.relpath(path)
    return str(path) if within.startswith("..") else within


YAML_READ_ERRORS = (
    yaml.YAMLError,
    UnicodeDecodeError,
    OSError,
)  # what reading a YAML file may raise


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
