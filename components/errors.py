"""Errors and warnings that a user should read as one message.

This module does not import torch, so that ``runner data`` starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence


def list_names(names: Sequence[str], most: int = 3, sign: str = ", ") -> str:
    """The first few names, and the number of the others."""
    others = len(names) - most
    return sign.join(names[:most]) + (f" and {others} more" if others > 0 else "")


class DataUnavailableError(RuntimeError):
    """Files that can neither be found nor downloaded; the message names them and the command that
    fetches them."""


class DamagedFileError(DataUnavailableError):
    """A file that is there but is not what it should be; nothing else is ever used in its place."""


class SimulatedDataWarning(UserWarning):
    """Simulated data take the place of the data asked for; they carry a name of their own in every
    record."""


class IncompleteResultWarning(UserWarning):
    """Something of a result is missing, or given in part; the message names it, says why, and what
    to do."""


class MissingOutputWarning(IncompleteResultWarning):
    """A figure or a table of a finished run that cannot be made; the message names it and says why
    in one line."""


class QuestionableConfigWarning(UserWarning):
    """Keys that fit and do poorly together; the message names them, says why, and what to do."""


class NumericalError(ArithmeticError):
    """A Cholesky that fails, a NaN, weights that are all zero: names the quantity and the config
    key to change."""

    def __init__(self, quantity: str, mend: str):
        super().__init__(f"{quantity}; {mend}")
        self.quantity = quantity
        self.mend = mend


class BudgetSpentError(Exception):
    """A budget that is spent before the first step."""


class ConfigMismatchError(ValueError):
    """A config value that only the data, or a built model, could show to be wrong.

    The message names the key and the fix.
    """


class GlobalStreamError(ConfigMismatchError):
    """A user's component that draws from a random stream of the whole process, or seeds it."""
