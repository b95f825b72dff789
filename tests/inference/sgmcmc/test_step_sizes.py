import math

import pytest
from pydantic import ValidationError
from support.runs.configured import component


def sizes(**keys):
    sgld = component("inference", "sgld", step_size=0.2, **keys)
    return [sgld.step_size_at(t) for t in range(12)]


def test_constant_schedule_keeps_step_size():
    assert set(sizes()) == {0.2}


def test_polynomial_schedule_matches_formula():
    expected = [0.2 * (1 + t / 4) ** -0.6 for t in range(12)]
    assert sizes(schedule="polynomial", decay=0.6, decay_scale=4.0) == pytest.approx(expected)


def test_cyclical_schedule_matches_zhang_eq_1():
    # their k starts at 1, and a cycle has ⌈K/M⌉ steps
    K = 12
    M = 3
    cycle = math.ceil(K / M)
    expected = [
        0.2 / 2 * (math.cos(math.pi * ((k - 1) % cycle) / cycle) + 1) for k in range(1, K + 1)
    ]
    actual = sizes(schedule="cyclical", cycle_length=4)
    assert actual == pytest.approx(expected)
    assert actual[:4] == actual[4:8] == actual[8:]
    assert all(e > 0 for e in actual)


def test_schedule_keys_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        component("inference", "sgld").step_size = 0.1


def test_single_cycle_is_cosine_schedule():
    """Gallego (2021), 1.3.4: one cosine without restarts, for the sampler and for ``map``."""
    sampler = component(
        "inference", "sgd_momentum", step_size=0.1, schedule="cyclical", cycle_length=50
    )
    descent = component("inference", "map", lr=0.1, schedule="cosine", anneal_steps=50)
    assert [sampler.step_size_at(t) for t in range(50)] == pytest.approx(
        [descent.rate_at(t) for t in range(50)]
    )
