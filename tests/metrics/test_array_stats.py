"""ArviZ's array functions load without xarray, Matplotlib and SciPy's slow modules, which work afterwards."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
from components.metrics.array_stats import load_array_stats

rng = np.random.default_rng(0)
walk = rng.normal(size=(4, 50, 3)).cumsum(1)
some_nan = np.where(rng.random((4, 51, 3)) < 0.1, np.nan, walk[:, [*range(50), 0]])
many_inf = np.where(rng.random((4, 50, 3)) < 0.6, np.inf, walk)
axes = {"chain_axis": 0, "draw_axis": 1}
ours = load_array_stats()

def values(stats):
    return [
        value
        for draws in (walk, walk.round(), some_nan, many_inf)
        for value in (
            stats.ess(draws, method="bulk", **axes),
            stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes),
            stats.rhat(draws, **axes),
            stats.rhat_nested(draws, superchain_ids=[0, 0, 1, 1], **axes),
            stats.mcse(draws, method="mean", **axes),
            stats.bfmi(draws[..., 0], **axes),
            stats.psislw(walk.ravel(), r_eff=1)[1],
            stats.autocorr(draws),
        )
    ]

scores = values(ours)
slow = "xarray matplotlib pandas arviz_base arviz_stats scipy.stats scipy.signal scipy.optimize"
heavy = [name for name in slow.split() if name in sys.modules]
assert not heavy, heavy
quantile = ours.mcse(walk, method="quantile", prob=0.3, **axes)  # imports scipy.stats
interval = ours.hdi(walk.ravel(), 0.9, method="multimodal")  # imports scipy.signal

import arviz_stats
from arviz_stats.base import array_stats as whole
assert whole is not ours and arviz_stats.__version__
assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(scores, values(whole), strict=True))
assert np.array_equal(quantile, whole.mcse(walk, method="quantile", prob=0.3, **axes))
assert np.array_equal(interval, whole.hdi(walk.ravel(), 0.9, method="multimodal"), equal_nan=True)
assert load_array_stats() is ours
"""


def test_statistics_equal_arviz_without_its_other_imports():
    code = [sys.executable, "-W", "ignore", "-c", CODE]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
