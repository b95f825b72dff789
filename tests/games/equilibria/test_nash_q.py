"""Nash-Q compared with a literal version, which enumerates equilibria at each move; results of
self-play.
"""

import numpy as np
import pytest
from support.runs.configured import component, double, draw_normal
from support.small.literal_games import literal_moves
from support.small.small_games import (
    assert_near,
    matrix_game,
    play,
    programme,
    three_states,
)
from torch.testing import assert_close

from components.games.equilibria.matrix_games import equilibria

COORDINATION = ([[1.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 3.0]])
DILEMMA = ([[5.0, 0.0], [6.0, 1.0]], [[5.0, 6.0], [0.0, 1.0]])
HUNT = ([[5.0, 0.0], [4.0, 1.0]], [[5.0, 4.0], [0.0, 1.0]])


def test_update_matches_hu_and_wellman():
    """Random initial values avoid degenerate games."""
    game = three_states(replicates=2, episodes=40)
    method = component("inference", "nash_q", selection="best")
    begin = draw_normal(2, 3, 2, 3, seed=6)

    class Begun(type(method)):
        def sit(self, values, seat, rng):
            mind = super().sit(values, seat, rng)
            mind.agent_values.values[:] = begin[0]
            mind.opponent_values.values[:] = begin[1].mT
            return mind

    state, posterior = play(game, Begun(**dict(method)))

    def best(a, b):
        each = equilibria(a, b)
        return each[int(np.argmax([x @ a @ y for x, y in each]))]

    for i in range(2):
        q_a, q_b = begin.clone().numpy()  # [s, a, b] both

        def policy(s, q_a=q_a, q_b=q_b):
            return 0.9 * best(q_a[s], q_b[s]).x + 0.05

        for s, a, b, r_a, r_b, s_next in literal_moves(game, i, policy):
            x, y = best(q_a[s_next], q_b[s_next])
            v_a = x @ q_a[s_next] @ y
            v_b = x @ q_b[s_next] @ y
            q_a[s, a, b] = 0.9 * q_a[s, a, b] + 0.1 * (r_a + 0.8 * v_a)
            q_b[s, a, b] = 0.9 * q_b[s, a, b] + 0.1 * (r_b + 0.8 * v_b)
        assert_near(state.mind.agent_values.values[i], q_a)
        assert_near(state.mind.opponent_values.values[i].mT, q_b)
        y = best(q_a[s_next], q_b[s_next]).y
        assert_near(posterior.forecast[i], y)
        assert_near(posterior.values[i], q_a[s_next] @ y)


@pytest.mark.parametrize(
    ("payoffs", "selection", "ends"),
    [
        (DILEMMA, "first", 1),
        (COORDINATION, "welfare", 1),
        (COORDINATION, "first", 0),
        (HUNT, "best", 0),
    ],
)
def test_self_play_reaches_an_equilibrium(payoffs, selection, ends):
    method = component(
        "inference", "nash_q", selection=selection, alpha=1.0, gamma=0.5, epsilon=0.5
    )
    learner = component("attacker", "learner", agent=method)
    game = matrix_game(*payoffs, replicates=5, episodes=150, opponent=learner)
    state, _ = play(game, method)
    opponent_mind = state.standing.adversary.mind
    # both players have the same values
    assert_close(state.mind.agent_values.values, opponent_mind.opponent_values.values)
    assert_close(state.mind.opponent_values.values, opponent_mind.agent_values.values)
    for mind in (state.mind, opponent_mind):
        assert method.mixture(mind, state.standing.s).tolist() == [[1.0 - ends, float(ends)]] * 5
    rewards = double(payoffs[0])
    exact = rewards + 0.5 * rewards[ends, ends] / 0.5
    assert_close(state.mind.agent_values.values[0, 0], exact, atol=1e-2, rtol=0)


def test_zero_sum_games_reach_their_value():
    payoff = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]]
    method = component("inference", "nash_q", alpha=1.0, gamma=0.5, epsilon=1.0)
    state, _ = play(matrix_game(payoff, replicates=2, episodes=300), method)
    value, x = programme(payoff)
    q = double(payoff) + 0.5 * value / 0.5
    assert_close(state.mind.agent_values.values[0, 0], q, atol=1e-3, rtol=0)
    assert_close(state.mind.opponent_values.values[0, 0], -q.T, atol=1e-3, rtol=0)
    assert method.mixture(state.mind, state.standing.s)[0].tolist() == pytest.approx(
        x.tolist(), abs=1e-2
    )
