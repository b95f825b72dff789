import math
from typing import get_args

import numpy as np
import pytest
import torch
from support.runs.configured import F64, draw_uniform, generator, normal, uniform
from torch.testing import assert_close

from components.maths.particles.order_statistics import quantiles
from components.maths.particles.resampling import (
    Scheme,
    ancestors,
    effective_sample_size,
    offspring,
    stratified_counts,
    systematic_counts,
)

DRAWS = 20_000
SCHEMES = get_args(Scheme)


def literal_counts(w, u):
    """Counts of the points (u_i + i)/N in the intervals of the cumulative weights."""
    edges = np.concatenate([[0.0], np.cumsum(w.numpy())[:-1], [1.0]])
    points = (u + torch.arange(len(w))) / len(w)
    return np.histogram(points.numpy(), edges)[0].tolist()


def weights(r, n, seed=0, spread=1.5):
    g = generator(seed)
    return (spread * normal(g, r, n)).softmax(1)


def bias_z(counts, w):
    """Largest |mean count − N w_n| in Monte-Carlo standard errors; counts [D, N], w [N]."""
    counts = counts.double()
    error = counts.std(0) / math.sqrt(len(counts))
    gap = (counts.mean(0) - len(w) * w).abs()
    return float((gap / error.clamp_min(1e-12))[gap > 1e-9].max())


@pytest.mark.parametrize("compiled", [True, False])
def test_counts_equal_the_literal_points(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("components.maths.compiled.loops.is_on_cpu", lambda x: False)
    w = weights(5, 13)
    u = draw_uniform(5, seed=3)
    fast = systematic_counts(w, u)
    for r in range(5):
        assert fast[r].tolist() == literal_counts(w[r], u[r])


def test_counts_are_unbiased_unlike_those_of_a_fixed_offset():
    w = weights(1, 20)[0]
    g = generator(0)
    many = w.expand(DRAWS, -1)
    u = uniform(g, DRAWS)
    assert bias_z(systematic_counts(many, u), w) < 4
    # Mutant: the same offset for every draw, so that half of the interval is never used.
    assert bias_z(systematic_counts(many, 0.5 * u), w) > 20


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ancestors_stay_inside_their_own_particle_system(scheme):
    rows = ancestors(scheme, weights(7, 30), generator(0)).view(7, 30)
    assert (rows // 30 == torch.arange(7).unsqueeze(1)).all()
    assert (rows.diff(dim=1) >= 0).all()


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_offspring_of_every_scheme_are_unbiased(scheme, n):
    """E[offspring of n] = N w_n with N in total; random numbers are drawn separately for each
    system."""
    w = weights(1, n)
    counts = offspring(scheme, w.expand(DRAWS, -1), generator(1))
    assert (counts.sum(1) == n).all()
    assert (counts >= 0).all()
    counts = counts.double()
    assert ((counts.mean(0) - n * w[0]).abs() < 4 * counts.std(0) / DRAWS**0.5 + 1e-12).all()


def test_counts_have_the_covariances_of_their_schemes():
    """Multinomial: N w (1 − w) and −N w w'; residual: the same for the remainders; SSP: never
    positive."""
    w = weights(1, 6, spread=0.7)
    many = w.expand(10 * DRAWS, -1)
    expected = 6 * w[0]
    offspring_counts = {s: offspring(s, many, generator(2)).double() for s in SCHEMES}
    rest = expected - expected.floor()
    k = rest.sum()
    q = rest / rest.sum()
    for scheme, points, p in (("multinomial", 6, w[0]), ("residual", k, q)):
        exact = points * (torch.diag(p) - torch.outer(p, p))
        assert_close(torch.cov(offspring_counts[scheme].T), exact, rtol=0, atol=0.03)
    for scheme in ("systematic", "ssp"):
        assert ((offspring_counts[scheme] - expected).abs() < 1).all(), scheme
        assert_close(offspring_counts[scheme].var(0), rest * (1 - rest), rtol=0, atol=0.01)
    apart = torch.cov(offspring_counts["ssp"].T).triu(1)
    assert apart.max() < 0.005
    assert apart.sum() < -0.3
    # each is better than independent draws
    for scheme in ("residual", "stratified", "systematic", "ssp"):
        assert (
            offspring_counts[scheme].var(0).sum()
            < 0.6 * offspring_counts["multinomial"].var(0).sum()
        )


def test_stratified_counts_equal_the_literal_strata():
    w = weights(4, 11)
    u = draw_uniform(4, 11, seed=3)
    fast = stratified_counts(w, u)
    for r in range(4):
        assert fast[r].tolist() == literal_counts(w[r], u[r])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_zero_weights_stay_childless_and_equal_ones_in_place(scheme):
    w = torch.zeros(3, 8, dtype=F64)
    w[0, 2] = 1.0
    w[1, [0, 7]] = 0.5
    w[2] = 1 / 8
    counts = offspring(scheme, w, generator(0))
    assert counts[0].tolist() == [0, 0, 8, 0, 0, 0, 0, 0]
    assert counts[1, 1:7].sum() == 0
    assert counts.sum(1).tolist() == [8, 8, 8]
    if scheme in ("residual", "systematic", "ssp", "stratified"):
        assert counts[1].tolist() == [4, 0, 0, 0, 0, 0, 0, 4]
        assert counts[2].tolist() == [1] * 8


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_adds_up_in_float32(scheme):
    counts = offspring(scheme, weights(2, 100_000, spread=2).float(), generator(0))
    assert counts.sum(1).tolist() == [100_000, 100_000]
    assert (counts >= 0).all()


def test_effective_sample_size_of_equal_and_single_weights():
    w = torch.tensor([[0.25] * 4, [1.0, 0, 0, 0]])
    assert effective_sample_size(w).tolist() == [4.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("n", [41, 399, 400, 1000, 3001])
def test_quantiles_of_the_tails_equal_those_of_a_full_sort(n, dtype):
    """Values in the order of resampled particles: many equal, all equal, irregular and infinite
    ones."""
    g = generator(0)
    plain = torch.randn(4, n, 3, generator=g, dtype=dtype)
    clumped = plain[:, (n * torch.rand(n, generator=g) ** 8).long().sort().values]
    # every fifth value differs from the rest
    waves = torch.arange(n).remainder(5).eq(0).view(1, -1, 1) * 10.0 + plain
    rough = plain.clone()
    rough[0, :30] = math.inf
    rough[1, ::7] = -math.inf
    equal = torch.ones_like(plain)
    for x in (plain, clumped, waves, -waves, equal, rough, plain.round(decimals=1)):
        ordered = x.sort(dim=1).values
        for p in (0.05, 0.95, 0.0, 1.0):
            place = p * (n - 1)
            low = math.floor(place)
            exact = torch.lerp(ordered[:, low], ordered[:, min(low + 1, n - 1)], place - low)
            for got in (quantiles(x, (p,))[0], quantiles(x, (p, 1 - p))[0]):
                assert_close(got, exact, rtol=0, atol=0, equal_nan=True)
