"""Autoregressive coefficients of a structural series, and heavy tails, compared with their exact
conditionals."""

import numpy as np
from scipy import stats

from components.maths.compiled.loops import compiled
from components.series.structural.compiled.heavy_tails import Tails, draw_precisions, slice_freedom
from components.series.structural.compiled.marginal_moves import is_stationary


def draw_hashes(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, n, dtype=np.uint64)


def test_stationarity_requires_roots_outside_the_unit_circle():
    phi = 3 * np.random.default_rng(0).random((500, 3)) - 1.5
    roots = [np.abs(np.roots([1, *-row])).max() < 1 for row in phi]
    assert 20 < sum(roots) < 480
    assert [is_stationary(row.copy(), np.empty(3)) for row in phi] == roots
    assert [is_stationary(np.array([x]), np.empty(1)) for x in (0.99, 1.0, -1.2)] == [
        True,
        False,
        False,
    ]


def test_precisions_are_gamma_or_drawn_from_the_prior():
    C = 3000
    nu = 5.0
    z = np.array([0.0, 3.0, 9.0])
    is_observed = np.array([True, True, False])
    lam = np.empty((C, 3))
    with np.errstate(over="ignore"):
        for draw, seed in zip(lam, draw_hashes(C), strict=True):
            draw_precisions(z, is_observed, nu, seed, draw)
    for t, (shape, rate) in enumerate([(3.0, 2.5), (3.0, 7.0), (2.5, 2.5)]):
        assert stats.kstest(lam[:, t], stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3


@compiled()
def _slice_all(tails, z, is_observed, nu, seeds):
    for c in range(len(nu)):
        nu[c] = slice_freedom(tails, z, is_observed, nu[c], seeds[c])


def test_degrees_of_freedom_follow_their_conditional():
    """Compared with the posterior on a grid: ν − 2 ~ Gamma(2, 0.1) times the t density of the
    observed errors."""
    z = stats.t(4).rvs(40, random_state=1)
    is_observed = np.ones(40, dtype=bool)
    is_observed[::5] = False
    nu = np.full(3000, 20.0)
    for k in range(12):
        _slice_all(Tails(True, True, 2.0, 0.1), z, is_observed, nu, draw_hashes(len(nu), k))
    grid = 2 + np.linspace(1e-4, 150, 40_000)
    log = stats.gamma(2, scale=10).logpdf(grid - 2) + stats.t(grid[:, None]).logpdf(
        z[is_observed]
    ).sum(1)
    cdf = np.exp(log - log.max()).cumsum()
    assert stats.kstest(nu, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-3
