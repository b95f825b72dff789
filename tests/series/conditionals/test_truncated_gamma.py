"""Truncated gamma numbers and variances against their exact law."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats

from components.maths.compiled import loops
from components.series.conditionals import truncated_gamma
from components.series.conditionals.exact_root import root
from components.series.conditionals.truncated_gamma import (
    deviations,
    sample_gamma,
    sample_gamma_above,
    variance_from_gamma,
)


def seeds(n):
    return np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64)


def law(a, c):
    """P(g ≤ x | g ≥ c), by upper tails."""
    return lambda x: 1 - special.gammaincc(a, x) / special.gammaincc(a, c)


@pytest.mark.parametrize("a", [0.3, 1.0, 2.5, 60.0])
def test_gamma_numbers_have_their_law(a):
    with np.errstate(over="ignore"):
        drawn = [sample_gamma(a, seed, 0)[0] for seed in seeds(1500)]
    assert stats.kstest(drawn, stats.gamma(a).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("a", "c"),
    [(0.5, 0.2), (0.5, 4.0), (1.0, 3.0), (3.0, 1.0), (3.0, 9.0), (60.0, 62.0), (60.0, 110.0)],
)
def test_numbers_beyond_a_limit_have_theirs(a, c):
    with np.errstate(over="ignore"):
        drawn = np.array([sample_gamma_above(a, c, seed) for seed in seeds(1500)])
    assert drawn.min() >= c
    assert stats.kstest(drawn, law(a, c)).pvalue > 1e-3


@pytest.mark.parametrize("upper", [0.9, 1.5, float("inf")])
def test_variances_are_inverse_gamma_below_their_limit(upper):
    """σ² ~ InvGamma(4, 3) given σ ≤ upper: 3/σ² is a gamma number given that it is at least
    3/upper²."""
    generator = torch.Generator().manual_seed(0)
    g = torch._standard_gamma(torch.full((20_000,), 4.0, dtype=torch.float64), generator=generator)
    found = deviations(g, 4.0, torch.full_like(g, 3.0), upper)
    assert float(found.max()) <= upper
    assert stats.kstest((3 / found.square()).numpy(), law(4.0, 3 / upper**2)).pvalue > 1e-3
    kept = g >= 3 / upper**2
    # what already lies there stays
    assert torch.equal(found[kept], root(torch.full_like(g, 3.0)[kept] / g[kept]))


@pytest.mark.skipif(not loops.available(), reason="numba is not installed")
def test_compiled_numbers_are_the_same():
    from numba import njit
    from numba.extending import register_jitable

    for part in truncated_gamma.compilable:
        register_jitable(part)
    compiled = njit(lambda g, a, half, upper: variance_from_gamma(g, a, half, upper))
    g = torch._standard_gamma(
        torch.full((300,), 2.5, dtype=torch.float64), generator=torch.Generator().manual_seed(1)
    )
    with np.errstate(over="ignore"):
        assert all(
            compiled(x, 2.5, 5.0, 1.1) == variance_from_gamma(x, 2.5, 5.0, 1.1) for x in g.tolist()
        )
