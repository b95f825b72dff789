"""WoLF policy hill-climbing compared with scalar code, and its policies in matching pennies."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component
from support.small.literal_games import literal_moves
from support.small.small_games import assert_near, game_of, matrix_game, play, three_states

from components.errors import ConfigMismatchError, QuestionableConfigWarning

PENNIES = [[1.0, -1.0], [-1.0, 1.0]]


def test_update_matches_bowling_and_veloso():
    game = three_states(replicates=3, episodes=80)
    method = component("inference", "wolf_phc", delta_win=0.05, delta_lose=0.2)
    state, _ = play(game, method)
    won = 0
    for i in range(3):
        q = np.zeros((3, 2))
        pi = np.full((3, 2), 0.5)
        average = pi.copy()
        visits = np.zeros(3)
        for s, a, _, r, _, s_next in literal_moves(game, i, lambda s, pi=pi: 0.9 * pi[s] + 0.05):
            q[s, a] = 0.9 * q[s, a] + 0.1 * (r + 0.8 * max(q[s_next]))
            visits[s] += 1
            average[s] += (pi[s] - average[s]) / visits[s]
            wins = pi[s] @ q[s] > average[s] @ q[s]
            won += wins
            best = q[s].argmax()
            lost = min(pi[s, 1 - best], (0.05 if wins else 0.2) / (2 - 1))
            pi[s, best] += lost
            pi[s, 1 - best] -= lost
        assert_near(state.mind.q.values[i, :, :, 0], q)
        assert_near(state.mind.pi[i], pi)
        assert_near(state.mind.average[i], average)
    assert 20 < won < 230  # both rates were used


def self_play(episodes, **changes):
    method = component("inference", "wolf_phc", epsilon=0.0, gamma=0.0, **changes)
    learner = component("attacker", "learner", agent=method)
    game = matrix_game(PENNIES, replicates=30, episodes=episodes, opponent=learner)
    state, _ = play(game, method)
    return state.mind, state.standing.adversary.mind


def test_matching_pennies_policies_average_a_half():
    for mind in self_play(800, delta_win=0.005, delta_lose=0.02):
        assert (mind.average[:, 0, 0] - 0.5).abs().mean() < 0.06
        torch.testing.assert_close(mind.average.sum(-1), torch.ones(30, 1).double())
        assert (mind.pi >= 0).all()


@pytest.mark.slow
def test_wolf_rates_reduce_oscillation():
    """With one step size, policies circle (Bowling and Veloso 2002)."""
    away = {}
    for win in (0.002, 0.02):
        with pytest.warns(QuestionableConfigWarning) if win == 0.02 else torch.no_grad():
            mind, _ = self_play(4000, alpha=0.3, delta_win=win, delta_lose=0.02)
        away[win] = float((mind.pi[:, 0, 0] - 0.5).abs().mean())
    assert away[0.002] < 0.6 * away[0.02]


def test_wrong_steps_and_unnumbered_states_are_refused():
    with pytest.raises(ValidationError, match=r"delta_win: 0\.5 .* delta_lose, 0\.01"):
        component("inference", "wolf_phc", delta_win=0.5)
    with pytest.warns(QuestionableConfigWarning, match="plain policy hill-climbing"):
        play(three_states(1, 1), component("inference", "wolf_phc", delta_win=0.01))
    with pytest.raises(ConfigMismatchError, match="requires numbered states"):
        play(game_of("coin_game", 2), component("inference", "wolf_phc"), model="q_linear")
