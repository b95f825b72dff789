import numpy as np
import pytest
import torch
from support.runs.configured import component
from support.small.literal_games import greedy, literal_moves
from support.small.small_games import assert_near, friend_or_foe, play, three_states
from torch.testing import assert_close


def test_update_matches_equation_4_1():
    game = three_states(replicates=4, episodes=60)
    state, posterior = play(game, component("inference", "q_learning"))
    for i in range(4):
        q = np.zeros((3, 2))
        rewards = []
        for s, a, _, r, _, s_next in literal_moves(game, i, lambda s, q=q: greedy(q[s], 0.1)):
            q[s, a] = 0.9 * q[s, a] + 0.1 * (r + 0.8 * max(q[s_next]))  # eq. (4.1)
            rewards.append(r)
        assert posterior.rewards[i].tolist() == rewards
        assert_near(state.mind.q[0].values[i, :, :, 0], q)
        assert int(state.standing.s[i]) == s_next


def test_table_with_rate_one_holds_last_reward():
    game = friend_or_foe(replicates=3, episodes=40)
    state, posterior = play(game, component("inference", "q_learning", alpha=1.0, gamma=0.0))
    held = state.mind.q[0].values[:, 0, :, 0]
    assert set(held.flatten().tolist()) <= {50.0, -50.0}
    assert (held == posterior.rewards[:, -1:]).any(1).all()


def test_replicates_are_independent_and_seeded():
    game = friend_or_foe(replicates=6, episodes=50)
    first, second = (play(game, component("inference", "q_learning"))[1].rewards for _ in range(2))
    assert torch.equal(first, second)
    assert len(torch.unique(first, dim=0)) == 6


def test_scores_are_tail_mean_and_total():
    game = friend_or_foe(replicates=2, episodes=50)
    _, posterior = play(game, component("inference", "q_learning"))
    scores = game.score(posterior, None)
    assert_close(scores["reward"], posterior.rewards[:, -10:].mean(1))
    assert_close(scores["total_reward"], posterior.rewards.sum(1))
    alone = friend_or_foe(replicates=1, episodes=50)
    _, posterior = play(alone, component("inference", "q_learning"))
    assert isinstance(alone.score(posterior, None)["reward"], float)
    assert set(game.draw(play(game, component("inference", "q_learning"))[1], None)) == {"rewards"}


def test_game_without_opponent_names_the_missing_key():
    game = friend_or_foe(replicates=2, episodes=5)
    game.attacker = None
    with pytest.raises(ValueError, match="add attacker=exponential_smoother"):
        play(game, component("inference", "q_learning"))
