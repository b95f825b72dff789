"""Friend-or-foe Q-learning compared with a literal version; its extremes are minimax-Q and joint
Q-learning.
"""

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, draw_normal
from support.small.literal_games import literal_moves
from support.small.small_games import (
    assert_near,
    play,
    programme,
    seat_of,
    seat_opponent,
    three_states,
)

from components.errors import ConfigMismatchError
from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from runner.execution.rng import Streams


def test_foes_only_give_minimax_q():
    results = []
    for method in (
        component("inference", "minimax_q"),
        component("inference", "friend_or_foe_q", opponents="foe"),
    ):
        game = three_states(4, 60)
        game.attacker = seat_opponent(method.name)
        state, posterior = play(game, method)
        results.append((state.mind.q.values, posterior.rewards, posterior.values))
    assert all(torch.equal(first, other) for first, other in zip(*results, strict=True))


def test_friends_only_give_joint_q_learning():
    game = three_states(replicates=3, episodes=60)
    state, _ = play(game, component("inference", "friend_or_foe_q", opponents="friend"))
    for i in range(3):
        q = np.zeros((3, 2, 3))

        def policy(s, q=q):
            best = (q[s] == q[s].max()).sum(1)
            return 0.9 * best / best.sum() + 0.05

        for s, a, b, r, _, s_next in literal_moves(game, i, policy):
            q[s, a, b] = 0.9 * q[s, a, b] + 0.1 * (r + 0.8 * q[s_next].max())
        assert_near(state.mind.q.values[i], q)


def two_opponents(reward, episodes=1):
    """One state, 2 actions of the agent, 2 and 3 of the opponents; all get the agent's reward."""
    tables = TableEnvironment(
        reward_a=reward.view(1, 2, 6),
        reward_b=reward.view(1, 2, 6, 1).expand(1, 2, 6, 2).contiguous(),
        transition=torch.zeros(1, 2, 6, dtype=torch.long),
        n_threats=(2, 3),
        touches=torch.zeros(1, 2, 1, dtype=F64),
    )
    both = component(
        "attacker", "together", members=[seat_opponent("random"), seat_opponent("random")]
    )
    return Game("two-opponents", tables, episodes, 0.2, 10, replicates=2, attacker=both)


@pytest.mark.parametrize("sides", [["friend", "foe"], ["foe", "friend"]])
def test_friend_and_foe_value_matches_programme(sides):
    """V = max over mixtures of (a, f) of the least over o; the agent plays its marginal of the
    mixture."""
    reward = draw_normal(2, 2, 3, seed=5)
    method = component(
        "inference", "friend_or_foe_q", opponents=sides, alpha=1.0, gamma=0.5, epsilon=1.0
    )
    state, _ = play(two_opponents(reward, episodes=300), method)
    friend_first = reward if sides[0] == "friend" else reward.mT  # [a, f, o]
    value, x = programme(friend_first.flatten(0, 1))
    torch.testing.assert_close(
        state.mind.q.values[0, 0], reward.view(2, 6) + 0.5 * value / 0.5, atol=1e-4, rtol=0
    )
    share = x.reshape(2, -1).sum(1)
    np.testing.assert_allclose(method.mixture(state.mind, state.standing.s)[1], share, atol=1e-3)


def test_friends_cooperate_and_foes_do_not():
    """Both players get 10 if they meet, and the agent gets 1 for certain otherwise: friends meet,
    foes do not."""
    pays = torch.tensor([[[10.0, 0.0], [1.0, 1.0]]]).double()
    for side, policy in (("friend", [1.0, 0.0]), ("foe", [0.0, 1.0])):
        method = component("inference", "friend_or_foe_q", opponents=side)
        seat = seat_of(1)
        game = method.arrange_payoffs(pays, seat)
        assert game.shape == ((1, 4, 1) if side == "friend" else (1, 2, 2))
        mind = method.sit(
            component("model", "q_table").build(three_states(1, 1), Streams(0)), seat, Streams(0)
        )
        mind.q.values[:, 0] = pays
        assert method.mixture(mind, torch.zeros(1, dtype=torch.long))[0].tolist() == policy


def test_every_opponent_must_be_declared():
    with pytest.raises(ConfigMismatchError, match=r"inference\.opponents: 1 declared, .* has 2"):
        play(
            two_opponents(torch.zeros(2, 2, 3).double()),
            component("inference", "friend_or_foe_q", opponents=["foe"]),
        )
