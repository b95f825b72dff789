"""Beliefs of an attacker about a classifier: Beta distributions and the frequencies of eq.
(3.12)."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import beta
from support.runs.configured import double, generator, normal
from torch.testing import assert_close

from components.attackers.words.beliefs import (
    attack_frequencies,
    beta_parameters,
    estimate_frequency,
    random_beliefs,
)


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_beta_has_requested_mean_and_variance(share):
    for r in (1e-6, 0.2, 0.5, 0.7, 0.999):
        law = beta(*beta_parameters(double(math.log(r / (1 - r))), share))
        largest = min(r**2 * (1 - r) / (1 + r), r * (1 - r) ** 2 / (2 - r))
        assert law.stats() == pytest.approx((r, share * largest), rel=1e-9)
        assert min(law.args) >= 1 - 1e-9
    for value in (-80.0, 80.0):  # r = 2e-35 and 1 − 2e-35
        parameters = beta_parameters(double(value), share)
        assert torch.stack(parameters).isfinite().all()


def test_beliefs_are_beta_draws():
    r = 0.3
    n = 40_000
    odds = double([math.log(r / (1 - r))])
    p = torch.sigmoid(random_beliefs(odds, 0.5, n, generator()))
    variance = 0.5 * r**2 * (1 - r) / (1 + r)
    assert abs(float(p.mean()) - r) < 4 * math.sqrt(variance / n)
    assert p.var() == pytest.approx(variance, rel=0.04)


def estimate_one(odds, which, n):
    """p̂ of one candidate, drawn jointly for two emails; the second lists its candidates in another
    order."""
    both = torch.cat([odds, odds.flip(1)])
    places = torch.tensor([which, odds.shape[1] - 1 - which])
    frequency = estimate_frequency(places, both, 0.8, n, generator(3))
    return float(frequency[1])


def test_frequencies_match_equation_3_12_and_converge():
    """p̂ from K draws compared with ∫ f_z(p) Π_{w≠z} (1 − F_w(p)) dp by quadrature, with the
    standard error of K Bernoulli trials."""
    odds = double([[-1.0, -0.4, 0.3, torch.inf]])
    d1, d2 = beta_parameters(odds[0, :3], 0.8)
    grid = (np.arange(4_000) + 0.5) / 4_000
    laws = [beta(*pair) for pair in zip(d1, d2, strict=True)]
    exact = []
    for z in range(3):
        rest = np.prod([laws[w].sf(grid) for w in range(3) if w != z], 0)
        exact.append((laws[z].pdf(grid) * rest).mean())
    assert sum(exact) == pytest.approx(1, abs=1e-5)
    for n in (100, 10_000):
        frequency = attack_frequencies(odds, 0.8, n, generator(1))[0]
        assert frequency.sum() == pytest.approx(1)
        assert float(frequency[3]) == 0
        for p, value in zip(exact, frequency[:3].tolist(), strict=True):
            assert abs(value - p) < 4 * math.sqrt(p * (1 - p) / n)
            assert abs(estimate_one(odds, exact.index(p), n) - p) < 4 * math.sqrt(p * (1 - p) / n)
    # Count choices of the same draws in a loop.
    draws = random_beliefs(odds[:, :3], 0.8, 50, generator(2))
    counts = torch.bincount(draws[:, 0].argmin(1), minlength=3)
    repeat = attack_frequencies(odds[:, :3], 0.8, 50, generator(2))[0]
    assert_close(repeat, counts / 50.0, check_dtype=False)


def test_one_candidate_frequency_matches_joint_draws():
    """Twenty candidates, some of them absent, compared in standard errors with frequencies that
    draw them all."""
    g = generator()
    n = 20_000
    odds = normal(g, 4, 20)
    odds[1, 5:] = torch.inf
    odds[2, 1:] = torch.inf  # no other email to send
    all_of_them = attack_frequencies(odds, 0.5, n, g)
    for which in range(5):
        frequency = estimate_frequency(torch.tensor([which, which, 0, which]), odds, 0.5, n, g)
        expected = all_of_them[range(4), [which, which, 0, which]]
        error = (2 * expected * (1 - expected) / n).sqrt() + 1e-12
        assert ((frequency - expected).abs() / error).max() < 4
    assert float(frequency[2]) == 1
    sure = estimate_frequency(odds.argmin(1), odds, 0.0, n, g)
    assert sure.tolist() == [1, 1, 1, 1]
    assert estimate_frequency(odds.argmax(1), odds, 0.0, n, g).tolist() == [0, 0, 0, 0]
