"""Functions compiled by numba."""

from __future__ import annotations

import gc
import hashlib
import inspect
import os
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
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
    """A contiguous array of a tensor on any device; on the CPU without a copy."""
    return np.ascontiguousarray(x.detach().cpu().numpy())


def compiled(
    fast: bool = False, inline: bool = False, allocates: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that compiles a function of arrays and numbers, and the functions that it calls, at
    the first call, which takes seconds once per machine.

    Args:
        fast: sums may be reordered, and products and sums fused.
        inline: called functions are inlined; the loop must not create arrays.
        allocates: False if neither the loop nor the functions that it calls create arrays, and
        references are not counted.
    """

    def decorate(loop: Callable[P, R]) -> Callable[P, R]:
        @wraps(loop)
        def call(*args: P.args, **keys: P.kwargs) -> R:
            gc.disable()  # garbage collection takes a tenth of a compilation
            try:
                return _compile(loop, fast, inline, allocates)(*args, **keys)
            finally:
                gc.enable()

        return call

    return decorate


@cache
def _compile(loop: Callable[P, R], fast: bool, inline: bool, allocates: bool) -> Callable[P, R]:
    from numba import config, njit  # imported here because it takes half a second
    from numba.extending import register_jitable

    functions = called_functions(loop)
    folder = _cache_folder(frozenset(Path(inspect.getfile(f)).parent for f in functions))
    if folder is not None:
        vars(config)["CACHE_DIR"] = str(folder)  # missing in numba's stubs
    options: dict[str, Any] = {
        # without "nnan" and "ninf", because infinite numbers and NaN must be preserved
        "fastmath": {"reassoc", "contract", "arcp", "nsz"} if fast else False,
        "_nrt": allocates and not inline,
        "no_cfunc_wrapper": True,  # for calls from C, which lengthen compilation by a tenth
    }
    for function in functions[1:]:
        register_jitable(forceinline=inline, **options)(function)
    return njit(loop, error_model="numpy", cache=folder is not None, **options)


def called_functions(loop: Callable[..., Any]) -> list[FunctionType]:
    """The loop and, recursively, the functions that its code names."""
    assert isinstance(loop, FunctionType)
    functions = [loop]
    for function in functions:
        for name in function.__code__.co_names:
            named = function.__globals__.get(name)
            if isinstance(named, FunctionType) and named not in functions:
                functions.append(named)
    return functions


@cache
def _cache_folder(source_folders: frozenset[Path]) -> Path | None:
    """Folder for compiled loops; None if no folder is writable.

    There is a folder for each version of these sources and of the sources in the folders of the
    loop and of the functions that it calls.  numba itself checks only the file of the outermost
    function.
    """
    sources = hashlib.sha256()
    for place in sorted({Path(__file__).parent, *source_folders}):
        for source in sorted(place.glob("*.py")):
            sources.update(source.read_bytes())
    folder = platformdirs.user_cache_path("bayes-runner") / "compiled" / sources.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
