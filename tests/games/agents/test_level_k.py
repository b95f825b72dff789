import itertools

import numpy as np
import pytest
import torch
from support.runs.configured import component
from support.small.literal_games import greedy, literal_moves
from support.small.small_games import assert_near, play, three_states


def test_update_matches_algorithm_4_1():
    game = three_states(replicates=3, episodes=60)
    rates = {"alpha": 0.1, "alpha_opponent": 0.2, "epsilon": 0.1, "epsilon_opponent": 0.3}
    state, posterior = play(game, component("inference", "level_k", **rates))
    for i in range(3):
        q2 = np.zeros((3, 2, 3))  # Q₂(s, a, b)
        q1 = np.zeros((3, 3, 2))  # Q̂₁(s, b, a)
        counts = np.ones((3, 2))  # of the agent's actions, from the opponent's view

        def p_b(s, counts=counts):
            return counts[s] / counts[s].sum()

        def p_a(s, q1=q1, p_b=p_b):  # line 3, at the requested state
            return greedy(q1[s] @ p_b(s), 0.3)

        def policy(s, q2=q2, p_a=p_a):
            return greedy(q2[s] @ p_a(s), 0.1)  # eq. (4.3)

        for s, a, b, r_a, r_b, s_next in literal_moves(game, i, policy):  # line 1
            counts[s, a] += 1
            # line 2
            q1[s, b, a] = 0.8 * q1[s, b, a] + 0.2 * (r_b + 0.8 * max(q1[s_next] @ p_b(s_next)))
            # line 4
            q2[s, a, b] = 0.9 * q2[s, a, b] + 0.1 * (r_a + 0.8 * max(q2[s_next] @ p_a(s_next)))
        assert_near(state.mind.q[0].values[i], q1)
        assert_near(state.mind.q[1].values[i], q2)
        assert_near(posterior.forecast[i], p_a(s_next))


@pytest.mark.parametrize("forget", [1.0, 0.8])
def test_level_1_is_fpq_learning(forget):
    game = three_states(replicates=5, episodes=80)
    state, posterior = play(game, component("inference", "level_k", level=1, forget=forget))
    fpq, other = play(game, component("inference", "fpq_learning", forget=forget))
    assert torch.equal(state.mind.q[0].values, fpq.mind.q[0].values)
    assert torch.equal(posterior.rewards, other.rewards)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_players_alternate_down_the_hierarchy(level):
    game = three_states(replicates=2, episodes=5)
    state, posterior = play(game, component("inference", "level_k", level=level))
    shapes = [tuple(q.values.shape[2:]) for q in state.mind.q]
    assert shapes[-1] == (2, 3)  # the agent's: 2 actions, 3 threats
    assert all(a == b[::-1] for a, b in itertools.pairwise(shapes))
    assert state.mind.counts.shape[-1] == shapes[0][1]
    assert posterior.forecast.shape == (2, 3)
