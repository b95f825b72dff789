"""What can be compiled here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
F = TypeVar("F", bound=Callable[..., Any])


@cache
def available() -> bool:
    """Whether numba is installed."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(loop: F, parts: Sequence[Callable[..., Any]] = (), fast: bool = False) -> F:
    """A function of arrays and numbers, and the functions that it calls, compiled; at its first call, in seconds.

    ``fast``: sums may be taken in another order.

    Raises:
        ImportError: numba is not installed.
    """
    from numba import njit
    from numba.extending import register_jitable

    for part in parts:
        register_jitable(fastmath=fast)(part)
    made: F = njit(loop, fastmath=fast, error_model="numpy")
    return made
