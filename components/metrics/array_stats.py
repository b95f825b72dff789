"""ArviZ's statistics of arrays, loaded without the rest of ArviZ.

They require only NumPy and SciPy.  The packages that contain them import xarray and Matplotlib
first, which takes longer than a small run.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGES = ("arviz_stats", "arviz_stats.base")
ARRAYS = "arviz_stats.base.array"


@cache
def load_array_stats() -> Any:
    """``arviz_stats.base.array_stats``, imported when the first statistic is computed.

    Its packages are replaced by empty ones during the import of the module; ``import arviz_stats``
    loads the real ones afterwards.
    """
    if PACKAGES[0] in sys.modules:
        return import_module(ARRAYS).array_stats
    spec = find_spec(PACKAGES[0])
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for name in PACKAGES:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [
            folder + name.removeprefix(PACKAGES[0]).replace(".", "/") for folder in folders
        ]
    try:
        return import_module(ARRAYS).array_stats
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGES[0]]:
            del sys.modules[name]
