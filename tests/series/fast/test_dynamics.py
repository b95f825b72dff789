"""Coefficients of a structural series' own dynamics, and heavy tails, against their exact
conditionals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from components.maths.compiled.loops import compile_loop
from components.series.fast import heavy_tails
from components.series.fast.heavy_tails import Tails, draw_precisions, slice_freedom
from components.series.fast.own_dynamics import (
    OwnRow,
    draw_several,
    is_stationary,
    row_work,
    weigh_row,
)
from components.series.fast.stocks import (
    FadingRegression,
    NormalPart,
    fading_work,
    slice_coefficient,
)


def hashed(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, n, dtype=np.uint64)


def test_stationary_is_where_all_roots_lie_outside_the_unit_circle():
    phi = 3 * np.random.default_rng(0).random((500, 3)) - 1.5
    roots = [np.abs(np.roots([1, *-row])).max() < 1 for row in phi]
    assert 20 < sum(roots) < 480
    assert [is_stationary(row.copy(), np.empty(3)) for row in phi] == roots
    assert [is_stationary(np.array([x]), np.empty(1)) for x in (0.99, 1.0, -1.2)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(("mean", "precision"), [(0.0, 0.0), (0.2, 1 / 0.3**2)])
def test_one_coefficient_has_its_truncated_normal_conditional(mean, precision):
    """x_{t+1} = φ x_t + 0.5 z_t + N(0, s²) on (0, 1): a normal by least squares and the prior,
    truncated."""
    s = 0.6
    alpha = 0.4 * np.random.default_rng(3).standard_normal((30, 2)).cumsum(0)
    row = OwnRow(0, np.array([0.0, 0.5]), np.array([[1.0, 0.0]]), precision, mean, True, 0.0, 1.0)
    work = row_work(1)
    none = np.zeros((0, 30))
    weigh_row(row, alpha, s, work)
    part = NormalPart(work.A[0, 0], work.b[0], 0.0, 1.0)
    fading = FadingRegression(
        none, none, np.zeros(0, int), 0, False, none, none, np.zeros(30), np.zeros(30), np.zeros(0)
    )
    with np.errstate(over="ignore"):
        phi = 0.5 * np.ones(2000)
        for k in range(6):
            seeds = hashed(len(phi), k)
            phi = [
                slice_coefficient(fading, 1.0, part, x, z, fading_work(1, 0))
                for x, z in zip(phi, seeds, strict=True)
            ]
    x = alpha[:, 0]
    z = alpha[:, 1]
    exact = (x[:-1] ** 2).sum() / s**2 + precision
    centre = ((x[:-1] * (x[1:] - 0.5 * z[:-1])).sum() / s**2 + precision * mean) / exact
    law = stats.truncnorm((0 - centre) * exact**0.5, (1 - centre) * exact**0.5, centre, exact**-0.5)
    assert stats.kstest(phi, law.cdf).pvalue > 1e-3


def draw_each(row, alpha, s, start, seeds):
    """φ [C, k] of so many chains."""
    out = np.tile(start, (len(seeds), 1))
    with np.errstate(over="ignore"):
        for phi, seed in zip(out, seeds, strict=True):
            work = row_work(len(phi))
            weigh_row(row, alpha, s, work)
            draw_several(row, seed, phi, work)
    return out


def test_several_coefficients_are_normal_where_they_are_stationary():
    """Moments against a fine grid of the stationary triangle of an autoregression of order two."""
    C = 3000
    s = 0.5
    x = 0.4 * np.random.default_rng(3).standard_normal(12).cumsum()
    alpha = np.stack([x, [x[0], *x[:-1]]], 1)
    row = OwnRow(0, np.zeros(2), np.eye(2), 0.0, 0.0, False, -1.0, 1.0)
    found = draw_each(row, alpha, s, np.zeros(2), hashed(C))
    a, b = np.meshgrid(np.linspace(-2, 2, 401), np.linspace(-1, 1, 201), indexing="ij")
    inside = (a + b < 1) & (b - a < 1) & (np.abs(b) < 1)
    D = alpha[:-1]
    target = alpha[1:, 0]
    errors = target - a[..., None] * D[:, 0] - b[..., None] * D[:, 1]
    log = np.where(inside, -0.5 * (errors**2).sum(-1) / s**2, -np.inf)
    weight = np.exp(log - special.logsumexp(log))
    assert all(is_stationary(phi.copy(), np.empty(2)) for phi in found)
    for j, grid in enumerate((a, b)):
        mean = (weight * grid).sum()
        sd = np.sqrt((weight * grid**2).sum() - mean**2)
        assert abs(found[:, j].mean() - mean) < 4 * sd / C**0.5 + 1e-3
        assert found[:, j].std() == pytest.approx(sd, rel=0.07)


def test_where_none_is_stationary_those_before_stay():
    x = 1.5 ** np.arange(12)
    alpha = np.stack([x, np.roll(x, 1)], 1) + 1e-3 * np.random.default_rng(0).standard_normal(
        (12, 2)
    )
    row = OwnRow(0, np.zeros(2), np.eye(2), 0.0, 0.0, False, -1.0, 1.0)
    start = np.array([0.3, 0.1])
    assert (draw_each(row, alpha, 1e-4, start, hashed(2)) == start).all()


def test_precisions_are_gamma_given_their_error_and_the_prior_where_none_is_seen():
    C = 3000
    nu = 5.0
    z = np.array([0.0, 3.0, 9.0])
    seen = np.array([True, True, False])
    lam = np.empty((C, 3))
    with np.errstate(over="ignore"):
        for own, seed in zip(lam, hashed(C), strict=True):
            draw_precisions(z, seen, nu, seed, own)
    for t, (shape, rate) in enumerate([(3.0, 2.5), (3.0, 7.0), (2.5, 2.5)]):
        assert stats.kstest(lam[:, t], stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3


def _slice_all(tails, z, seen, nu, seeds):
    for c in range(len(nu)):
        nu[c] = slice_freedom(tails, z, seen, nu[c], seeds[c])


def test_degrees_of_freedom_have_the_conditional_of_student_errors():
    """Against the posterior on a grid: ν − 2 ~ Gamma(2, 0.1) times the t density of the errors that
    are seen."""
    z = stats.t(4).rvs(40, random_state=1)
    seen = np.ones(40, dtype=bool)
    seen[::5] = False
    nu = np.full(3000, 20.0)
    loop = compile_loop(_slice_all, heavy_tails.compilable)
    for k in range(12):
        loop(Tails(True, True, 2.0, 0.1), z, seen, nu, hashed(len(nu), k))
    grid = 2 + np.linspace(1e-4, 150, 40_000)
    log = stats.gamma(2, scale=10).logpdf(grid - 2) + stats.t(grid[:, None]).logpdf(z[seen]).sum(1)
    cdf = np.exp(log - log.max()).cumsum()
    assert stats.kstest(nu, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-3
