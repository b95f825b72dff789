from __future__ import annotations

import math

import pytest
from pydantic import ValidationError
from support.runs.configured import component


def sizes(**keys) -> list[float]:
    sgld = component("inference", "sgld", step_size=0.2, **keys)
    return [sgld.step_size_at(t) for t in range(12)]


def test_constant():
    assert set(sizes()) == {0.2}


def test_polynomial():
    expected = [0.2 * (1 + t / 4) ** -0.6 for t in range(12)]
    assert sizes(schedule="polynomial", decay=0.6, decay_scale=4.0) == pytest.approx(expected)


def test_cyclical_is_zhang_eq_1():
    K, M = 12, 3  # their k counts from 1, and ⌈K/M⌉ steps are a cycle
    cycle = math.ceil(K / M)
    expected = [
        0.2 / 2 * (math.cos(math.pi * ((k - 1) % cycle) / cycle) + 1) for k in range(1, K + 1)
    ]
    got = sizes(schedule="cyclical", cycle_length=4)
    assert got == pytest.approx(expected)
    assert got[:4] == got[4:8] == got[8:]
    assert all(e > 0 for e in got)


REFUSED = [
    ("sgld", {"schedule": "polynomial", "decay": 0.5}, "Robbins-Monro"),
    ("sgld", {"schedule": "polynomial", "decay": 1.1}, "Robbins-Monro"),
    ("sgld", {"schedule": "cosine"}, "polynomial"),
    ("sgld", {"cycles": 4}, "extra"),
    ("psgld", {"burn_in": 0, "adapt": "burn_in"}, "burn_in=0 leaves no step to adapt in"),
    ("adam_noise", {"burn_in": 0, "adapt": "burn_in"}, "burn_in=0 leaves no step to adapt in"),
    ("sghmc", {"step_size": 0.5, "friction": 3.0}, "friction: step_size × friction"),
    ("recipe", {"step_size": 1.0, "friction": 1.3}, "turns the momentum round"),
    ("sgdm_r", {"chains": 8, "friction": 2.0, "step_size": 5.0},
     "step_size: at 5 friction reverses momenta; use a value below .* = 4"),
    ("sgld_r", {"chains": 6, "kernel_particles": 4}, "kernel_particles: 6 particles"),
    ("svgd", {"chains": 6, "kernel_particles": 4}, "kernel_particles: 6 particles"),
    ("sgld_r", {"chains": 1}, "chains: repulsion needs at least 2 particles"),
    ("sgdm_r", {"chains": 1}, "chains: repulsion needs at least 2 particles"),
    ("adam_nr", {"chains": 1}, "chains: repulsion needs at least 2 particles"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "keys", "message"), REFUSED)
def test_keys_are_checked(name, keys, message):
    with pytest.raises(ValidationError, match=message) as caught:
        component("inference", name, **keys)
    assert caught.value.error_count() == 1


def test_keys_do_not_change_afterwards():
    with pytest.raises(ValidationError, match="frozen"):
        component("inference", "sgld").step_size = 0.1


def test_a_cycle_as_long_as_the_run_is_the_cosine_of_a_descent():
    """Gallego (2021), 1.3.4: one cosine without restarts, for the sampler as for ``map``."""
    sampler = component(
        "inference", "sgd_momentum", step_size=0.1, schedule="cyclical", cycle_length=50
    )
    descent = component("inference", "map", lr=0.1, schedule="cosine", anneal_steps=50)
    assert [sampler.step_size_at(t) for t in range(50)] == pytest.approx(
        [descent.rate_at(t) for t in range(50)]
    )
