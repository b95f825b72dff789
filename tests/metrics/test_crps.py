"""The continuous ranked probability score, compared with its definition as an integral, and
computed in parts for many pairs."""

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
def test_crps_is_the_integrated_squared_difference_of_cdfs(n):
    mixture_law, y = mixture(n)
    points = torch.linspace(-20, 20, 40_001, dtype=F64)
    for b in range(3):
        for t in range(2):
            single = GaussianMixture(
                mixture_law.mu[:, b : b + 1, t : t + 1], mixture_law.v[:, b : b + 1, t : t + 1]
            )
            gap = (single.cdf(points[:, None])[:, 0] - (points >= y[b, t]).to(F64)).square()
            expected = torch.trapezoid(gap, points)
            assert float(crps(mixture_law, y)[b, t]) == pytest.approx(float(expected), abs=1e-3)


def test_crps_equals_the_closed_form_over_all_pairs():
    mixture_law, y = mixture(6)
    draws = torch.distributions.Normal(0.0, 1.0)

    def magnitude(mu, v):
        s = v**0.5
        return 2 * s * draws.log_prob(mu / s).exp() + mu * (2 * draws.cdf(mu / s) - 1)

    first = sum(magnitude(y - mixture_law.mu[i], mixture_law.v[i]) for i in range(6)) / 6
    pairs = (
        sum(
            magnitude(mixture_law.mu[i] - mixture_law.mu[j], mixture_law.v[i] + mixture_law.v[j])
            for i in range(6)
            for j in range(6)
        )
        / 36
    )
    assert_close(crps(mixture_law, y), first - 0.5 * pairs)


def test_random_pairs_estimate_the_crps_of_many_components():
    mixture_law, y = mixture(400, rows=5)
    # 20 of the 200 distances
    exact = crps(mixture_law, y)
    some = crps(mixture_law, y, pairs=400 * 10 * 20)
    assert not torch.equal(exact, some)
    assert_close(some, exact, rtol=0, atol=0.03)
