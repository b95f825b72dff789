"""Functions compiled by numba."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import platformdirs
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
P = ParamSpec("P")
R = TypeVar("R")


def is_on_cpu(x: Tensor) -> bool:
    """True if a tensor is on the CPU, where compiled loops can read it."""
    return x.device.type == "cpu"


def to_array(x: Tensor) -> Array:
    """A contiguous array of the numbers of a tensor on any device; on the CPU without a copy."""
    return np.ascontiguousarray(x.detach().cpu().numpy())


def compile_loop(
    loop: Callable[P, R],
    parts: Sequence[Callable[..., Any]] = (),
    fast: bool = False,
    inline: bool = False,
    allocates: bool = True,
) -> Callable[P, R]:
    """Compiles a function of arrays and numbers, and the functions that it calls; seconds at its
    first call on a machine.

    Args:
        fast: sums may be taken in another order, products and sums in one rounding.
        inline: parts are written out where they are called; the loop must not make arrays.
        allocates: False: neither the loop nor its parts make arrays, and references are not counted.
    """
    from numba import config, njit  # here: its import takes half a second
    from numba.extending import register_jitable

    folder = _cache_folder(Path(inspect.getfile(loop)).parent)
    if folder is not None:
        vars(config)["CACHE_DIR"] = str(folder)  # numba's stubs do not have it
    # Without "nnan" and "ninf": infinite numbers and NaN must stay what they are.
    allowed = {"reassoc", "contract", "arcp", "nsz"} if fast else False
    options: dict[str, Any] = {"fastmath": allowed, "_nrt": allocates and not inline}
    for part in parts:
        register_jitable(forceinline=inline, **options)(part)
    return njit(loop, error_model="numpy", cache=folder is not None, **options)


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
