import numpy as np
import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, double, generator
from support.small.small_games import assert_near, move_of, seat_of
from torch.nn.functional import one_hot

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams


def smoother(**overrides):
    return component("attacker", "exponential_smoother", **overrides)


def observe_target(a, seen=None):
    """Move that takes target a [R]; the action is hidden where ``seen`` is false."""
    return move_of(a, shown=one_hot(a, 2).double(), seen=seen)


def test_update_matches_published_equation():
    attacker = smoother(beta=0.7)
    state = attacker.reset(seat_of(2), Streams(0))
    p = np.full((2, 2), 0.5)
    for a in torch.randint(0, 2, (30, 2), generator=generator(0)):
        state = attacker.observe(state, observe_target(a))
        p = 0.7 * p + (1 - 0.7) * np.eye(2)[a]
    assert_near(state, p)


def test_reward_is_placed_at_least_expected_target():
    state = double([[0.6, 0.1, 0.3], [0.2, 0.7, 0.1]])
    for seed in range(5):
        assert smoother().act(state, None, Streams(seed)).tolist() == [1, 2]


def test_ties_are_broken_uniformly():
    n = 20_000
    state = double([0.4, 0.3, 0.3]).expand(n, 3)
    b = smoother().act(state, None, Streams(0))
    assert not (b == 0).any()
    share = float((b == 1).double().mean())
    assert abs(share - 0.5) < 4 * (0.25 / n) ** 0.5


def test_first_of_equal_estimates_is_selected_on_request():
    state = double([[0.4, 0.3, 0.3], [0.2, 0.5, 0.2]])
    for seed in range(5):
        assert smoother(ties="first").act(state, None, Streams(seed)).tolist() == [1, 0]


def test_smoother_draws_only_from_attack_stream():
    rng = Streams(0)
    untouched = Streams(0)
    smoother().act(torch.full((4, 2), 0.5), None, rng)
    assert torch.equal(rng.noise.get_state(), untouched.noise.get_state())
    assert not torch.equal(rng.attack.get_state(), untouched.attack.get_state())


def test_small_beta_mirrors_last_action():
    attacker = smoother(beta=0.45)
    state = attacker.reset(seat_of(50), Streams(0))
    rng = Streams(0)
    for a in torch.randint(0, 2, (20, 50), generator=generator(1)):
        state = attacker.observe(state, observe_target(a))
        assert torch.equal(attacker.act(state, None, rng), 1 - a)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1])
def test_beta_outside_the_open_unit_interval_is_refused(beta):
    with pytest.raises(ValidationError):
        smoother(beta=beta)


def test_move_without_target_changes_nothing():
    attacker = smoother(beta=0.6)
    previous = attacker.observe(
        attacker.reset(seat_of(3), Streams(0)), observe_target(torch.tensor([0, 1, 1]))
    )
    after = attacker.observe(
        previous, observe_target(torch.tensor([0, 0, 0]), seen=torch.tensor([True, False, False]))
    )
    assert torch.equal(after[1:], previous[1:])
    assert float(after[0, 0]) == pytest.approx(0.6 * float(previous[0, 0]) + 0.4)


def test_actions_must_match_targets():
    with pytest.raises(ConfigMismatchError, match="has 2 actions for 3 targets"):
        smoother().reset(seat_of(1, targets=3), Streams(0))
