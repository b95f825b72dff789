"""The continuous ranked probability score against its definition as an integral, and in parts where
there are many pairs."""

import pytest
import torch
from support.runs.configured import F64, generator, normal, uniform
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture
from components.metrics.crps import crps


def mixture(n, rows=3, seed=0):
    g = generator(seed)
    mu = 2 * normal(g, n, rows, 2)
    v = (0.3 + uniform(g, n, rows, 2)) ** 2
    return GaussianMixture(mu, v), 2 * normal(g, rows, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_it_is_the_integral_of_the_squared_distance_of_distribution_functions(n):
    said, y = mixture(n)
    at = torch.linspace(-20, 20, 40_001, dtype=F64)
    for b in range(3):
        for t in range(2):
            one = GaussianMixture(said.mu[:, b : b + 1, t : t + 1], said.v[:, b : b + 1, t : t + 1])
            gap = (one.cdf(at[:, None])[:, 0] - (at >= y[b, t]).to(F64)).square()
            expected = torch.trapezoid(gap, at)
            assert float(crps(said, y)[b, t]) == pytest.approx(float(expected), abs=1e-3)


def test_it_is_the_closed_form_over_all_pairs_written_out():
    said, y = mixture(6)
    draws = torch.distributions.Normal(0.0, 1.0)

    def magnitude(mu, v):
        s = v**0.5
        return 2 * s * draws.log_prob(mu / s).exp() + mu * (2 * draws.cdf(mu / s) - 1)

    first = sum(magnitude(y - said.mu[i], said.v[i]) for i in range(6)) / 6
    pairs = (
        sum(
            magnitude(said.mu[i] - said.mu[j], said.v[i] + said.v[j])
            for i in range(6)
            for j in range(6)
        )
        / 36
    )
    assert_close(crps(said, y), first - 0.5 * pairs)


def test_some_of_the_pairs_stand_for_all_where_there_are_too_many():
    said, y = mixture(400, rows=5)
    # 20 distances of 200
    exact = crps(said, y)
    some = crps(said, y, pairs=400 * 10 * 20)
    assert not torch.equal(exact, some)
    assert_close(some, exact, rtol=0, atol=0.03)
