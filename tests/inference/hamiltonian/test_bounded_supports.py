"""NUTS on densities with bounded supports: every chain moves, and the moments are exact.

At some starts only small steps are accepted. With a step size adapted to the mean acceptance of all
chains, these chains do not move.
"""

import pytest
from bounded_densities import LAWS
from support.runs.configured import component, load
from support.small.small_problems import train

from components.inference.hamiltonian import nuts

FAST = ["half_normal_uniform", "gamma", "arcsine"]


def scores(name, seed, steps=1200):
    """Scores of NUTS at its defaults, and the acceptance rate of the worst chain."""
    law = LAWS[name]
    mean, sd = (list(column) for column in zip(*law.moments, strict=True))
    keys = {"function": "bounded_densities:log_density", "arguments": {"name": name}}
    problem, _ = load("log_density", dim=len(mean), support=law.support, mean=mean, sd=sd, **keys)
    sampler = component("inference", "nuts", warmup=400)
    state, rng = train(sampler, component("model", "target_density"), problem, steps, seed)
    draws = sampler.posterior(state)
    worst = float(draws.stats["acceptance_rate"].double().mean(1).min())
    return problem.score(draws, rng) | {"worst_acceptance": worst}


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[] if name in FAST and seed == 0 else pytest.mark.slow)
        for name in LAWS
        for seed in range(4)
    ],
)
def test_nuts_is_exact_on_bounded_supports(name, seed):
    result = scores(name, seed)
    assert result["rhat"] < 1.01
    assert result["z_max"] < 4.5
    assert result["worst_acceptance"] > 0.6


def test_mean_acceptance_hides_stuck_chains(monkeypatch):
    monkeypatch.setattr(nuts, "harmonic_mean", lambda rate: rate.mean())
    assert scores("half_normal_uniform", 1, steps=500)["worst_acceptance"] < 0.1
