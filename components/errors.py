"""Errors and warnings that a user should read as one message.

This module does not import torch, so that ``runner data`` starts fast.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec


def list_names(names: Sequence[str], most: int = 3, sign: str = ", ") -> str:
    """The first names, and the number of the others."""
    others = len(names) - most
    return sign.join(names[:most]) + (f" and {others} more" if others > 0 else "")


class DataUnavailableError(RuntimeError):
    """Files are missing and cannot be downloaded; the message names them and the command that
    fetches them."""


class DamagedFileError(DataUnavailableError):
    """A file exists but its contents are wrong; no other data are used in its place."""


class SimulatedDataWarning(UserWarning):
    """Simulated data replace the requested data; every record gives them a different name."""


class IncompleteResultWarning(UserWarning):
    """A result is missing or incomplete; the message names it, with the reason and the fix."""


class MissingOutputWarning(IncompleteResultWarning):
    """A figure or a table of a finished run cannot be made; the one-line message names it with the
    reason."""


class QuestionableConfigWarning(UserWarning):
    """Keys are compatible but perform poorly together; the message has the reason and the fix."""


class NumericalError(ArithmeticError):
    """Numerical failure (Cholesky, NaN, all weights zero); the message names the quantity and the
    config key to change."""

    def __init__(self, quantity: str, mend: str):
        super().__init__(f"{quantity}; {mend}")
        self.quantity = quantity
        self.mend = mend


class BudgetSpentError(Exception):
    """A budget that is spent before the first step."""


class ConfigMismatchError(ValueError):
    """A config value that turns out to be invalid for the data or the built model.

    The message names the key and the fix.
    """


class GlobalStreamError(ConfigMismatchError):
    """A user's component draws from a process-wide random stream or seeds it."""


def require_package(module: str, key: str, extra: str, install: str = "") -> None:
    """Check that a package of an extra is installed, without importing it.

    Args:
        module: top-level module of the package.
        key: command or override that requires it; begins the message.
        extra: name of the extra in pyproject.toml.
        install: arguments of pip, by default the extra.

    Raises:
        ConfigMismatchError: the package is missing; the message gives the command that installs it.
    """
    if find_spec(module) is None:
        install = install or f"'bayes-runner[{extra}]'"
        raise ConfigMismatchError(f"{key}: requires the package {module}; pip install {install}")


def warn_incomplete(message: str) -> None:
    """Warn of an incomplete result; the warning points to the caller of the calling function."""
    warnings.warn(message, IncompleteResultWarning, stacklevel=3)
