"""Truncated gamma numbers and variances compared with their exact law."""

import numpy as np
import pytest
from scipy import special, stats

from components.maths.compiled.loops import compiled
from components.series.structural.compiled.truncated_gamma import (
    sample_gamma,
    sample_gamma_above,
    variance_from_gamma,
)


def seeds(n):
    return np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64)


def law(a, c):
    """P(g ≤ x | g ≥ c) by upper tail probabilities."""
    return lambda x: 1 - special.gammaincc(a, x) / special.gammaincc(a, c)


@pytest.mark.parametrize("a", [0.3, 1.0, 2.5, 60.0])
def test_gamma_draws_follow_their_law(a):
    with np.errstate(over="ignore"):
        drawn = [sample_gamma(a, seed, 0)[0] for seed in seeds(1500)]
    assert stats.kstest(drawn, stats.gamma(a).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("a", "c"),
    [(0.5, 0.2), (0.5, 4.0), (1.0, 3.0), (3.0, 1.0), (3.0, 9.0), (60.0, 62.0), (60.0, 110.0)],
)
def test_truncated_draws_follow_their_law(a, c):
    with np.errstate(over="ignore"):
        drawn = np.array([sample_gamma_above(a, c, seed) for seed in seeds(1500)])
    assert drawn.min() >= c
    assert stats.kstest(drawn, law(a, c)).pvalue > 1e-3


@pytest.mark.parametrize("upper", [0.9, 1.5, float("inf")])
def test_variances_are_truncated_inverse_gammas(upper):
    """σ² ~ InvGamma(4, 3) given σ ≤ upper: 3/σ² is a gamma number given that it is at least
    3/upper²."""
    g = np.random.default_rng(0).standard_gamma(4.0, 5000)
    with np.errstate(over="ignore"):
        variance = np.array([variance_from_gamma(x, 4.0, 3.0, upper) for x in g])
    assert variance.max() <= upper**2
    assert stats.kstest(3 / variance, law(4.0, 3 / upper**2)).pvalue > 1e-3
    kept = g >= 3 / upper**2
    assert (variance[kept] == 3 / g[kept]).all()


def test_compiled_draws_equal_the_reference():
    fast = compiled()(variance_from_gamma)
    with np.errstate(over="ignore"):
        for g in np.random.default_rng(1).standard_gamma(2.5, 300):
            assert fast(g, 2.5, 5.0, 1.1) == variance_from_gamma(g, 2.5, 5.0, 1.1)
