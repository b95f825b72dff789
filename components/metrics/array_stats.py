"""ArviZ's statistics of arrays, loaded without the rest of ArviZ and without most of SciPy.

The packages that contain them import xarray and Matplotlib first, and ArviZ's densities import half
of SciPy.  Both take longer than a small run, and no diagnostic needs them.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGES = ("arviz_stats", "arviz_stats.base")
ARRAYS = "arviz_stats.base.array"
SLOW = (
    "scipy.optimize",
    "scipy.signal",
    "scipy.signal.windows",
    "scipy.sparse",
    "scipy.interpolate",
    "scipy.stats",
)


class LateModule(ModuleType):
    """Stand-in for a slow module, which is imported when one of its functions is called."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is not self:  # the import of ArviZ has ended
            return getattr(import_module(self.__name__), name)
        return lambda *args, **kwargs: getattr(self, name)(*args, **kwargs)


def normal_scores(values: NDArray[Any]) -> NDArray[np.float64]:
    """Rank-normalised values of any shape, Φ⁻¹((r − 3/8)/(S + 1/4)) for the rank r of S values.

    Equal values share their mean rank; the score of NaN is NaN.  ArviZ's own function returns the
    same and imports scipy.stats.

    Source: Vehtari et al. (2021), section 4.1."""
    from scipy.special import ndtri

    scores = ndtri((mean_ranks(values) - 3 / 8) / (values.size + 1 / 4))
    return np.where(np.isnan(values), np.nan, scores)


def mean_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks 1 … S of S values of any shape; equal values share their mean rank.

    SciPy's function returns the same and takes half a second to import.
    """
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (sizes.cumsum() - (sizes - 1) / 2)[group]
    return ranks.reshape(values.shape)


@cache
def load_array_stats() -> Any:
    """``arviz_stats.base.array_stats``, imported when the first statistic is computed.

    Its packages are replaced by empty ones during the import of the module, and modules of SciPy by
    ``LateModule``; ``import arviz_stats`` loads the real ones afterwards.
    """
    if PACKAGES[0] in sys.modules:
        return import_module(ARRAYS).array_stats
    # SciPy's own imports must not see the replacements
    import_module("scipy.fftpack")
    late = {name: LateModule(name) for name in SLOW if name not in sys.modules}
    spec = find_spec(PACKAGES[0])
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for name in PACKAGES:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [
            folder + name.removeprefix(PACKAGES[0]).replace(".", "/") for folder in folders
        ]
    sys.modules |= late
    try:
        array_stats = import_module(ARRAYS).array_stats
    finally:
        arviz = [name for name in sys.modules if name.partition(".")[0] == PACKAGES[0]]
        for name in [*late, *arviz]:
            del sys.modules[name]
    array_stats._z_scale = normal_scores
    return array_stats
