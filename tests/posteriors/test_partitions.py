"""Literal losses between partitions, and Bayes actions compared with a search over all
partitions."""

import math

import numpy as np
import pytest
from support.small.small_partitions import partitions

from components.posteriors.partitions import (
    expected_binder,
    expected_variation,
    least,
    relabel_by_appearance,
    together,
)

EVERY = np.array(list(partitions(6)))


def variation(a, z):
    """H(a | z) + H(z | a) from its definition."""
    total = 0.0
    n = len(a)
    for k in set(a):
        for c in set(z):
            both, label_mean, other = (np.mean(v) for v in ((a == k) & (z == c), a == k, z == c))
            if both:
                total -= both * (math.log(both / label_mean) + math.log(both / other))
    assert n == len(z)
    return total


def pairs_apart(a, z):
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    return sum((a[i] == a[j]) != (z[i] == z[j]) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize(
    ("loss", "literal"), [(expected_binder, pairs_apart), (expected_variation, variation)]
)
def test_losses_equal_their_definitions(loss, literal):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, z = EVERY[rng.integers(len(EVERY), size=2)]
        assert loss(z[None]).cost(a) == pytest.approx(literal(a, z), abs=1e-12)
        assert loss(a[None]).cost(a) == pytest.approx(0, abs=1e-12)
    draws = EVERY[rng.integers(len(EVERY), size=30)]
    a = EVERY[17]
    assert loss(draws).cost(a) == pytest.approx(np.mean([literal(a, z) for z in draws]))


@pytest.mark.parametrize("loss", [expected_binder, expected_variation])
def test_actions_are_optimal_over_all_partitions(loss):
    assert len(EVERY) == 203  # Bell's number
    rng = np.random.default_rng(1)
    changes = 0
    for _ in range(25):
        z = EVERY[rng.choice(len(EVERY), 150, p=rng.dirichlet(np.full(len(EVERY), 0.05)))]
        expected = loss(z)
        costs = np.array([expected.cost(a) for a in EVERY])
        action = least(expected, z)
        assert expected.cost(action) == pytest.approx(costs.min())
        changes += not (z == action).all(1).any()
    shown = EVERY[[3, 3, 3, 100]]
    assert (least(loss(shown), shown) == EVERY[3]).all()


def test_relabelling_changes_nothing():
    z = np.array([[5, 5, 2, 0, 2], [0, 0, 1, 2, 1]])
    assert (relabel_by_appearance(z) == [[0, 0, 1, 2, 1]]).all()
    assert together(z)[2, 4] == 1
    assert together(z)[0, 3] == 0
