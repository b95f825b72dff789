"""Compilation of loops with numba, and its cache."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import platformdirs
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
P = ParamSpec("P")


@cache
def available() -> bool:
    """True if numba is installed."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def serve(x: Tensor) -> bool:
    """True if compiled loops can process a tensor: it is on the CPU, and numba is installed."""
    return x.device.type == "cpu" and available()


def compile_loop(
    loop: Callable[P, None],
    parts: Sequence[Callable[..., Any]] = (),
    fast: bool = False,
    inline: bool = False,
) -> Callable[P, None]:
    """A function of arrays and numbers, and the functions that it calls, compiled; at its first
    call ever on a machine, in seconds.

    ``fast``: sums may be taken in another order, and products and sums in one rounding.
    ``inline``: the parts are written out where they are called, and nobody counts who holds an
    array, so that the loop may make none.

    Raises:
        ImportError: numba is not installed.
    """
    from numba import config, njit
    from numba.extending import register_jitable

    folder = _cache_folder(Path(inspect.getfile(loop)).parent)
    if folder is not None:
        vars(config)["CACHE_DIR"] = str(folder)  # missing from numba's types
    # Do not assume finite numbers: infinities and NaN must survive.
    allowed = {"reassoc", "contract", "arcp", "nsz"} if fast else False
    for part in parts:
        register_jitable(fastmath=allowed, forceinline=inline)(part)
    untold = {"_nrt": not inline}  # missing from numba's types too
    return njit(loop, fastmath=allowed, error_model="numpy", cache=folder is not None, **untold)  # type: ignore[call-overload]


@cache
def _cache_folder(beside: Path) -> Path | None:
    """Cache folder for compiled loops; None if no folder is writable.

    There is a folder for each state of these sources and of the sources next to the loop.
    numba itself checks only the file of the outermost function, which calls functions in
    other files.
    """
    sources = hashlib.sha256()
    for place in sorted({Path(__file__).parent, beside}):
        for source in sorted(place.glob("*.py")):
            sources.update(source.read_bytes())
    folder = platformdirs.user_cache_path("bayes-runner") / "compiled" / sources.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
