"""One-sided bounds on a probability: their definition and coverage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from components.maths.divergences.binomial_bound import lower_bound, upper_bound


@pytest.mark.parametrize("error", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_tails_have_the_given_error_probability(n, error):
    """P(K ≥ k | p̲) = error = P(K ≤ k | p̄), from the binomial distribution."""
    k = np.arange(n + 1)
    low = lower_bound(k, n, error)
    high = upper_bound(k, n, error)
    assert_allclose(stats.binom.sf(k - 1, n, low)[1:], error, rtol=1e-9)
    assert_allclose(stats.binom.cdf(k, n, high)[:-1], error, rtol=1e-9)
    assert (low[0], high[-1]) == (0, 1)
    assert low[-1] == pytest.approx(error ** (1 / n))


@pytest.mark.parametrize("p", [0.03, 0.5, 0.8, 0.999])
def test_lower_bound_exceeds_the_truth_at_most_as_often_as_set(p):
    """The probability of p̲ > p, exact from the binomial distribution and in a simulation."""
    n = 200
    error = 0.05
    k = np.arange(n + 1)
    too_high = lower_bound(k, n, error) > p
    assert stats.binom.pmf(k, n, p)[too_high].sum() <= error
    draws = np.random.default_rng(0).binomial(n, p, 20_000)
    share = float((lower_bound(draws, n, error) > p).mean())
    assert share <= error + 4 * np.sqrt(error * (1 - error) / 20_000)
    # the upper bound is almost never a valid lower bound
    if 0.03 <= p <= 0.8:
        assert (upper_bound(draws, n, error) > p).mean() > 0.9
