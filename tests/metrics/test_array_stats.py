"""ArviZ's array functions load without xarray and Matplotlib, and ArviZ stays importable."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
from components.metrics.array_stats import load_array_stats

draws = np.random.default_rng(0).normal(size=(4, 50, 3)).cumsum(1)
axes = {"chain_axis": 0, "draw_axis": 1}
ours = load_array_stats()
scores = [ours.ess(draws, method="bulk", **axes), ours.rhat(draws, **axes), ours.autocorr(draws)]
heavy = [name for name in ("xarray", "matplotlib", "pandas", "arviz_base", "arviz_stats") if name in sys.modules]
assert not heavy, heavy

import arviz_stats
from arviz_stats.base import array_stats as whole
assert arviz_stats.__version__
expected = [whole.ess(draws, method="bulk", **axes), whole.rhat(draws, **axes), whole.autocorr(draws)]
assert all(np.array_equal(a, b) for a, b in zip(scores, expected))
assert load_array_stats() is ours
"""


def test_statistics_equal_arviz_without_its_other_imports():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
