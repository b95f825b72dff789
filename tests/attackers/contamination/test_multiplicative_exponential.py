from __future__ import annotations

import math

import pytest
import torch
from configured import component, load
from known_targets import z_score

from components.contracts.sequences import Clean
from components.trouble import Misfit


def attacked(seed=0, **keys):
    problem, rng = load("wiener_velocity", seed, replicates=60, n_steps=500)
    return problem, problem.attacked(component("attacker", "multiplicative_exponential", **keys), rng)


def test_the_noise_and_not_the_observation_is_multiplied_by_an_exponential_factor():
    clean, hit = attacked(probability=0.2, scale=7.0)
    struck = hit.corrupted
    assert abs(z_score(struck.flatten().double(), 0.2)) < 4
    before, after = (clean.observations - clean.means)[struck], (hit.observations - clean.means)[struck]
    factor = after / before  # of ε alone, whatever the position
    torch.testing.assert_close(factor[:, 0], factor[:, 1], rtol=1e-6, atol=1e-8)  # one for all coordinates
    xi = factor[:, 0]
    assert (xi > 0).all()
    assert abs(z_score(xi, 7.0)) < 4
    assert abs(z_score(xi.square(), 2 * 49.0)) < 4
    for q in (0.1, 0.5, 0.9):  # quantiles: P(ξ <= −s log(1 − q)) = q
        assert abs(z_score((xi <= -7.0 * math.log(1 - q)).double(), q)) < 4
    assert abs(z_score((xi - 7.0) * (before[:, 0].square() - 1), 0.0)) < 4  # independent of the clean noise
    assert torch.equal(hit.observations[~struck], clean.observations[~struck])


def test_extremes():
    clean, none = attacked(probability=0.0)
    assert torch.equal(none.observations, clean.observations)
    _, every = attacked(probability=1.0)
    assert every.corrupted.all()


def test_it_needs_to_know_the_noise():
    problem, rng = load("wiener_velocity", n_steps=10)
    with pytest.raises(Misfit, match="does not know apart from them; use a simulated one"):
        component("attacker", "multiplicative_exponential").corrupt(Clean(problem.observations), rng)


def test_a_missing_observation_stays_missing():
    problem, rng = load("local_level", replicates=5, n_steps=50, missing=0.4)
    hit = problem.attacked(component("attacker", "multiplicative_exponential", probability=1.0), rng)
    assert torch.equal(hit.missing, problem.missing)
    assert torch.equal(hit.corrupted, ~problem.missing)


def test_its_law_is_not_said():
    assert component("attacker", "multiplicative_exponential").offers == frozenset()
