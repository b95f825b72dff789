"""How fast goodwill fades: the evidence written out, and draws against a grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from components.maths.compiled.loops import compile_loop
from components.series.fast import stocks
from components.series.fast.stocks import (
    FadingRegression,
    NormalPart,
    fading_work,
    log_evidence,
    slice_coefficient,
)

N = 30
P = 4
SIGMA = 0.8
FADES = np.array([-1, 0, 0, 1])
OTHER = 0.7
LIMITS = np.array([0.0, 0.0, 0.3, 0.0])  # κ of each stock
OMEGA = np.eye(P) + 0.2


def grown(flow, kept, limit=0.0):
    s = 0.0
    out = []
    for u in flow:
        out.append(s)
        s = (kept - limit * u) * s + u
    return np.array(out)


def case(seed=0):
    """Columns; two are stocks with the φ that is drawn, one with another."""
    g = np.random.default_rng(seed)
    flow = g.random((P, N))
    weights = g.random(N)
    left = g.standard_normal(N)
    weights[4] = left[4] = 0.0  # a time that is not seen
    columns = flow.copy()
    columns[3] = grown(flow[3], OTHER)
    gamma = np.array([True, seed % 2 == 0, seed % 2 == 1, True])
    return FadingRegression(columns, flow, FADES, 0, True, OMEGA, gamma, left, weights, LIMITS)


def literally(fading, x):
    """log N(e | 0, σ²(Λ⁻¹ + X Ω⁻¹ Xᵀ)) of times that are seen."""
    X = np.array(
        [
            grown(u, x, k) if q == 0 else own
            for u, own, q, k in zip(fading.flow, fading.columns, FADES, LIMITS, strict=True)
        ]
    )
    on = fading.gamma
    seen = fading.weights > 0
    X = X[on][:, seen].T
    spread = np.diag(1 / fading.weights[seen]) + X @ np.linalg.inv(OMEGA[on][:, on]) @ X.T
    return stats.multivariate_normal(np.zeros(seen.sum()), SIGMA**2 * spread).logpdf(
        fading.left[seen]
    )


def test_the_evidence_is_that_of_the_dense_gaussian():
    for seed in range(4):
        fading = case(seed)
        work = fading_work(N, P)
        one, two = (log_evidence(fading, SIGMA, x, work) for x in (0.3, 0.8))
        assert two - one == pytest.approx(literally(fading, 0.8) - literally(fading, 0.3), abs=1e-8)


def _slice_all(fading, part, x, seeds, work):
    for c in range(len(x)):
        x[c] = slice_coefficient(fading, SIGMA, part, x[c], seeds[c], work)


@pytest.mark.parametrize("is_told", [True, False])
def test_draws_have_the_law_on_a_grid(is_told):
    """Of the evidence times a normal part; of that part where no column fades."""
    fading = case()._replace(is_told=is_told)
    x = np.full(2000, 0.5)
    g = np.random.default_rng(0)
    loop = compile_loop(_slice_all, stocks.compilable)
    for _ in range(6):
        seeds = g.integers(0, 2**63, len(x), dtype=np.uint64)
        loop(fading, NormalPart(4.0, 1.0, 0.0, 1.0), x, seeds, fading_work(N, P))
    grid = np.linspace(0.0005, 0.9995, 400)
    log = np.array([is_told * literally(fading, v) + (1 - 2 * v) * v for v in grid])
    cdf = np.exp(log - log.max()).cumsum()
    assert stats.kstest(x, lambda v: np.interp(v, grid, cdf / cdf[-1])).pvalue > 1e-3
