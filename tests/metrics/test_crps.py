"""The continuous ranked probability score against its definition as an integral, and in parts where
there are many pairs."""

import pytest
import torch
from support.runs.configured import F64, generator
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture
from components.metrics.crps import crps


def mixture(n, rows=3, seed=0):
    g = generator(seed)
    mu = 2 * torch.randn(n, rows, 2, generator=g, dtype=F64)
    v = (0.3 + torch.rand(n, rows, 2, generator=g, dtype=F64)) ** 2
    return GaussianMixture(mu, v), 2 * torch.randn(rows, 2, generator=g, dtype=F64)


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
    exact, some = crps(said, y), crps(said, y, pairs=400 * 10 * 20)  # 20 distances of 200
    assert not torch.equal(exact, some)
    assert_close(some, exact, rtol=0, atol=0.03)


def test_a_forecast_that_is_right_scores_best_on_average():
    g = generator(3)
    y = torch.randn(20_000, 1, generator=g, dtype=F64)
    scores = {}
    for mean, sd in ((0.0, 1.0), (0.3, 1.0), (0.0, 1.4), (0.0, 0.7)):
        said = GaussianMixture(
            torch.full((1, 20_000, 1), mean, dtype=F64),
            torch.full((1, 20_000, 1), sd**2, dtype=F64),
        )
        scores[mean, sd] = float(crps(said, y).mean())
    assert min(scores, key=lambda key: scores[key]) == (0.0, 1.0)
    assert scores[0.0, 1.0] == pytest.approx(0.5642, abs=0.01)  # 1/√π
