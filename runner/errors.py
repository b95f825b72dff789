"""User errors: one or two lines naming the key, the value and the fix, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

# how to fix a PermissionError
ACCESS_FIX = "ask its owner for chmod -R u+rwX,g+rX, or give another path"


class RunnerError(Exception):
    """Base of all errors of the runner: one to three lines that name the key and the fix."""


class ConfigError(RunnerError):
    """An invalid request, detected before any work."""


class UnfitError(ConfigError):
    """Configured components are incompatible.

    Args:
        problem: reason of the incompatibility.
        keys: keys that could take another component; names are suggested if the composition is
            valid with them.
        fix: settings that could help, ``model.posterior=sparse model.bound=variational``; suggested
            under the same condition.
    """

    def __init__(self, problem: str, *keys: str, fix: str = ""):
        super().__init__(problem)
        self.problem = problem
        self.keys = keys
        self.fix = fix


class RunFailure(RunnerError):
    """A run cannot continue; its progress is saved."""


class RunnerWarning(UserWarning):
    """Python warning for a message that the command line shows in a panel."""


def similar(word: str, words: Iterable[str]) -> str:
    """``, did you mean X?``; empty if no similar word exists."""
    lower = {name.lower(): name for name in sorted(set(words), reverse=True)}
    near = get_close_matches(word, sorted(set(words)), n=1, cutoff=0.6) or get_close_matches(
        word.lower(), lower, n=1, cutoff=0.6
    )
    return f", did you mean {lower.get(near[0], near[0])}?" if near else ""


def nearest(word: str, words: Iterable[str]) -> str:
    """``, did you mean X?`` or, without a similar word, the list of words."""
    words = sorted(set(words))
    if near := similar(word, words):
        return near
    listing = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"; there are: {listing}" if words else ""


def first_line(error: BaseException) -> str:
    """First line of an error's message, or the name of its type without a message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def first_mistake(error: ValidationError) -> str:
    """First error in values that pydantic refused: ``key: message``."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"


def display_path(path: str | Path) -> str:
    """Path for messages, relative to the current folder if it lies inside."""
    within = os.path.relpath(path)
    return str(path) if within.startswith("..") else within
