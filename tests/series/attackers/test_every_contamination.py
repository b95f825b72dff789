"""Every contamination: its stream, its extremes, and observations that are already missing."""

import pytest
import torch
from support.runs.configured import component, load

from components import registry
from components.contracts.attackers import Contamination

NAMES = [
    n for n in registry.names("attacker") if issubclass(registry.get("attacker", n), Contamination)
]
every = pytest.mark.parametrize("name", NAMES)


def attack(name, problem, rng, **keys):
    return problem.attack(component("attacker", name, **keys), rng)


@every
def test_draws_use_only_the_attack_stream(name):
    problem, rng = load("wiener_velocity", replicates=2, n_steps=20)
    rng_state = rng.state()
    clean = problem.observations.clone()
    hit = attack(name, problem, rng, probability=0.3)
    after = rng.state()
    assert {s for s in after if not torch.equal(after[s], rng_state[s])} == {"attack"}
    assert torch.equal(problem.observations, clean)
    assert torch.equal(hit.clean, clean)
    assert torch.equal(hit.states, problem.states)
    assert "corrupted" in hit.describe()


@every
def test_share_0_changes_nothing_and_share_1_everything(name):
    problem, rng = load("wiener_velocity", replicates=2, n_steps=30)
    none = attack(name, problem, rng, probability=0.0)
    assert torch.equal(none.observations, problem.observations)
    struck = attack(name, problem, rng, probability=1.0).is_corrupted
    # a sensor that never worked has nothing to repeat
    assert not struck.any() if name == "sensor_stuck" else struck.all()


@every
def test_missing_observation_is_not_corrupted(name):
    problem, rng = load("local_level", replicates=20, n_steps=100, missing=0.3)
    hit = attack(name, problem, rng, probability=0.5)
    assert hit.missing[problem.missing].all()
    lost = hit.missing & ~problem.missing
    assert not hit.is_corrupted[problem.missing].any()
    assert torch.equal(lost, hit.is_corrupted) if name == "missing" else not lost.any()
