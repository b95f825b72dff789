"""What can be compiled here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ParamSpec

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
P = ParamSpec("P")


@cache
def available() -> bool:
    """Whether numba is installed."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(
    loop: Callable[P, None], parts: Sequence[Callable[..., Any]] = (), fast: bool = False
) -> Callable[P, None]:
    """A function of arrays and numbers, and the functions that it calls, compiled; at its first call, in seconds.

    ``fast``: sums may be taken in another order.

    Raises:
        ImportError: numba is not installed.
    """
    from numba import njit
    from numba.extending import register_jitable

    for part in parts:
        register_jitable(fastmath=fast)(part)
    return njit(loop, fastmath=fast, error_model="numpy")
