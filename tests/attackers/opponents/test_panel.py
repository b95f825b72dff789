"""A panel of opponents: replicate r plays only against member r mod M."""

from pathlib import Path

import pytest
import torch
from support.runs.configured import F64, component, double, generator
from support.small.small_games import play
from torch.testing import assert_close

from components.contracts.games import Move, Turn
from components.contracts.roles import Setting
from runner.execution.rng import Streams

R = 6
SETTING = Setting(Path(), torch.device("cpu"), F64, R)


def matrix_game(attacker):
    game = component("dataset", "iterated_matrix", episodes=40).load(Streams(0), SETTING)
    game.attacker = attacker
    return game


def values_of(game):
    return component("model", "q_table").build(game, Streams(0))


def random_moves(n, generator):
    """Moves of the prisoner's dilemma with memory: s, a, b, r, r_hers and s_next [R]."""
    pays = double([[5.0, 0.0], [6.0, 1.0]])  # of (own, other)
    s = torch.full((R,), 4)
    for _ in range(n):
        a, b = torch.randint(2, (2, R), generator=generator)
        s_next = 2 * a + b
        yield Move(
            0, s, a, torch.zeros(R, 2), None, b, pays[b, a], pays[a, b], s_next, None, None, False
        )
        s = s_next


def test_each_replicate_faces_its_member():
    members = [component("attacker", "fixed_policy", plays=p) for p in ("cooperate", "defect")]
    panel = component("attacker", "panel", members=[*members, component("attacker", "tit_for_tat")])
    rng = Streams(0)
    state = panel.reset(matrix_game(panel).seat(0, None, 2), rng)
    for move in random_moves(5, generator(1)):
        b = panel.act(state, Turn(move.s, 0, None), rng)
        copied = [0] * R if int(move.s[0]) == 4 else (move.s // 2).tolist()
        assert b.tolist() == [[0, 1, copied[r]][r % 3] for r in range(R)]
        state = panel.observe(state, move)


@pytest.mark.parametrize("agent", ["q_learning", "fpq_learning", "nash_q", "wolf_phc"])
def test_members_learn_from_their_replicates_only(agent):
    """A learner without a panel, given the same moves, has the same policy as the panel's learner
    in its replicates; in other replicates the panel's learner does not change."""
    learner = component("attacker", "learner", agent=component("inference", agent))
    fixed = component("attacker", "fixed_policy")
    panel = component("attacker", "panel", members=[fixed, learner])
    game = matrix_game(panel)
    seat = game.seat(0, values_of(game), 2)
    mind = learner.reset(seat, Streams(0))
    both = panel.reset(seat, Streams(0))
    old_policy = learner.policy_in(learner.reset(seat, Streams(0)), torch.zeros(R).long(), 0)
    for move in random_moves(30, generator(2)):
        mind = learner.observe(mind, move)
        both = panel.observe(both, move)
    is_own = torch.arange(R) % 2 == 1
    for s in range(5):
        states = torch.full((R,), s)
        inside = learner.policy_in(both[1], states, 0)
        outside = learner.policy_in(mind, states, 0)
        assert_close(inside[is_own], outside[is_own], rtol=0, atol=0)
        assert_close(inside[~is_own], old_policy[~is_own], rtol=0, atol=0)
    new_policy = learner.policy_in(mind, torch.zeros(R).long(), 0)
    assert not torch.equal(new_policy[is_own], old_policy[is_own])


def test_scores_by_replicate_match_members():
    members = [component("attacker", "fixed_policy", plays=p) for p in ("cooperate", "defect")]
    game = matrix_game(component("attacker", "panel", members=members))
    _, posterior = play(game, component("inference", "q_learning"))
    scores = game.score(posterior, Streams(0))
    assert scores["first_action_opponents"].tolist() == [1, 0] * (R // 2)
    assert scores["reward"][::2].min() > scores["reward"][1::2].max()  # 5 or more, 1 or less


def test_fewer_replicates_seat_first_members():
    panel = component(
        "attacker", "panel", members=[component("attacker", "fixed_policy") for _ in range(R + 1)]
    )
    assert len(panel.reset(matrix_game(panel).seat(0, None, 2), Streams(0))) == R
