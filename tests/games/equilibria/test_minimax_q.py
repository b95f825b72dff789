"""Minimax-Q compared with a literal version, which solves a linear programme per move; values of
matrix games and of Markov games.
"""

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, double, draw_normal, generator, normal
from support.small.literal_games import literal_moves, safest_policy
from support.small.small_games import (
    ROCK,
    assert_near,
    game_of,
    matrix_game,
    play,
    programme,
    seat_opponent,
    three_states,
)

from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from components.games.equilibria.solved import StageGameSolutions

PENNIES = [[1.0, -1.0], [-1.0, 1.0]]
RANDOM = draw_normal(3, 3, seed=8).tolist()


def test_update_matches_littman():
    game = three_states(replicates=2, episodes=30)
    state, _ = play(game, component("inference", "minimax_q"))
    for i in range(2):
        q = np.zeros((3, 2, 3))

        def policy(s, q=q):
            return 0.9 * safest_policy(q[s])[1] + 0.1 / 2

        for s, a, b, r, _, s_next in literal_moves(game, i, policy):
            q[s, a, b] = 0.9 * q[s, a, b] + 0.1 * (r + 0.8 * safest_policy(q[s_next])[0])
        assert_near(state.mind.q.values[i], q)


@pytest.mark.parametrize("payoff", [PENNIES, ROCK, RANDOM], ids=["pennies", "rock", "random"])
def test_minimax_q_finds_value_and_safest_mixture(payoff):
    """Q(a, b) = r(a, b) + γ V and V = v/(1 − γ), for all players."""
    method = component("inference", "minimax_q", alpha=1.0, gamma=0.5, epsilon=1.0)
    state, posterior = play(matrix_game(payoff, replicates=2, episodes=300), method)
    value, x = programme(payoff)
    for r in range(2):
        exact = double(payoff) + 0.5 * value / 0.5
        torch.testing.assert_close(state.mind.q.values[r, 0], exact, atol=1e-4, rtol=0)
        assert method.mixture(state.mind, state.standing.s)[r].tolist() == pytest.approx(
            x.tolist(), abs=1e-3
        )
        # ψ are the values of actions against the minimising mixture: V for actions in the support,
        # less for others.
        assert posterior.values[r].max() == pytest.approx(value / 0.5, abs=1e-3)


def test_exploitability_is_near_the_value():
    """The opponent learns; exploitability is compared with Q-learning, which has a pure policy."""
    lost = {}
    for name in ("minimax_q", "q_learning"):
        game = matrix_game(ROCK, replicates=20, episodes=400, opponent="q_learning")
        _, posterior = play(game, component("inference", name, epsilon=0.1))
        lost[name] = game.score(posterior, None)["exploitability"]
    assert lost["minimax_q"].mean() < 0.1
    assert lost["q_learning"].min() > 0.8


def shapley(game, gamma):
    """V(s) := value of r(s, ·, ·) + γ V(s′), iterated (Shapley 1953)."""
    v = np.zeros(2)
    for _ in range(40):
        payoffs = game.reward_a.numpy() + gamma * v[game.transition.numpy()]
        v = np.array([programme(payoff)[0] for payoff in payoffs])
    return v


def test_markov_game_values_match_shapley():
    g = generator(1)
    reward = normal(g, 2, 2, 2)
    tables = TableEnvironment(
        reward_a=reward,
        reward_b=-reward.unsqueeze(-1),
        transition=torch.tensor([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]),
        n_threats=(2,),
        touches=torch.zeros(2, 2, 1, dtype=F64),
    )
    game = Game("two-states", tables, 500, 0.2, 10, replicates=2, attacker=seat_opponent("random"))
    method = component("inference", "minimax_q", alpha=1.0, gamma=0.6, epsilon=1.0)
    state, _ = play(game, method)
    exact = shapley(tables, 0.6)
    for s in range(2):
        values = method._solution(state.mind, torch.full((2,), s))[:, 0]
        assert values.tolist() == pytest.approx([exact[s]] * 2, abs=1e-5)


def test_two_opponents_act_as_one():
    method = component("inference", "minimax_q")
    state, _ = play(game_of("blotto", 2, episodes=30), method)
    assert state.mind.q.values.shape == (2, 1, 6, 9)
    for r in range(2):
        value, _ = programme(state.mind.q.values[r, 0].numpy())
        assert float(method._solution(state.mind, state.standing.s)[r, 0]) == pytest.approx(value)


def test_only_changed_games_are_solved():
    calls = []

    def solve(games):
        calls.append(len(games))
        return games.sum(1, keepdim=True)

    solved = StageGameSolutions(torch.full((3, 2, 2), torch.nan), torch.zeros(3, 2, 1))
    rows = torch.tensor([0, 1, 0])
    games = torch.arange(6.0).view(3, 2)
    for _ in range(2):
        assert solved.at(rows, games, solve).tolist() == [[1], [5], [9]]
    games[1] += 1
    assert solved.at(rows, games, solve).tolist() == [[1], [7], [9]]
    assert solved.at(1 - rows, games, solve).tolist() == [[1], [7], [9]]  # other states
    assert calls == [3, 1, 3]
