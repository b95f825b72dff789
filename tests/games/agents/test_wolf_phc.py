"""WoLF policy hill-climbing, one number at a time, and where it goes in matching pennies."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component
from support.small.small_games import draws, invert, matrix_game, play, three_states

from components.contracts.roles import Setting
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from runner.execution.rng import Streams

PENNIES = [[1.0, -1.0], [-1.0, 1.0]]


def test_update_is_bowling_and_velosos():
    game = three_states(replicates=3, episodes=80)
    method = component("inference", "wolf_phc", delta_win=0.05, delta_lose=0.2)
    state, posterior = play(game, method)
    uniforms, threats = draws(game)
    won = 0
    for i in range(3):
        q, pi, average, visits = ([[v] * 2 for _ in range(3)] for v in (0.0, 0.5, 0.5, 0.0))
        s = 0
        for t in range(80):
            a, b = invert([0.9 * p + 0.05 for p in pi[s]], uniforms[t][i]), threats[t][i]
            r, s_next = (
                float(game.environment.reward_a[s, a, b]),
                int(game.environment.transition[s, a, b]),
            )
            assert float(posterior.rewards[i, t]) == r
            q[s][a] = 0.9 * q[s][a] + 0.1 * (r + 0.8 * max(q[s_next]))
            visits[s][0] += 1
            average[s] = [
                m + (p - m) / visits[s][0] for m, p in zip(average[s], pi[s], strict=True)
            ]
            now, usual = (
                sum(p * v for p, v in zip(ps, q[s], strict=True)) for ps in (pi[s], average[s])
            )
            delta = 0.05 if now > usual else 0.2
            won += now > usual
            best = q[s].index(max(q[s]))
            lost = min(pi[s][1 - best], delta / (2 - 1))
            pi[s][best], pi[s][1 - best] = pi[s][best] + lost, pi[s][1 - best] - lost
            s = s_next
        torch.testing.assert_close(
            state.mind.q.values[i, :, :, 0], torch.tensor(q, dtype=torch.float64)
        )
        torch.testing.assert_close(state.mind.pi[i], torch.tensor(pi, dtype=torch.float64))
        torch.testing.assert_close(
            state.mind.average[i], torch.tensor(average, dtype=torch.float64)
        )
    assert 20 < won < 230  # both rules have had their say


def self_play(episodes, **changes):
    method = component("inference", "wolf_phc", epsilon=0.0, gamma=0.0, **changes)
    game = matrix_game(PENNIES, replicates=30, episodes=episodes)
    game.attacker = component("attacker", "learner", agent=method)
    state, _ = play(game, method)
    return state.mind, state.standing.adversary.mind


def test_in_matching_pennies_both_average_a_half():
    for mind in self_play(800, delta_win=0.005, delta_lose=0.02):
        assert float((mind.average[:, 0, 0] - 0.5).abs().mean()) < 0.06
        torch.testing.assert_close(mind.average.sum(-1), torch.ones(30, 1).double())
        assert bool((mind.pi >= 0).all())


@pytest.mark.slow
def test_who_wins_slowly_stays_nearer_to_a_half_than_who_does_not():
    """Policies themselves, which circle at one step size (Bowling and Veloso 2002)."""
    away = {}
    for win in (0.002, 0.02):
        with pytest.warns(QuestionableConfigWarning) if win == 0.02 else torch.no_grad():
            mind, _ = self_play(4000, alpha=0.3, delta_win=win, delta_lose=0.02)
        away[win] = float((mind.pi[:, 0, 0] - 0.5).abs().mean())
    assert away[0.002] < 0.6 * away[0.02]


def test_steps_in_the_wrong_order_and_states_without_numbers_are_refused():
    with pytest.raises(ValidationError, match=r"delta_win: 0\.5 must not exceed delta_lose, 0\.01"):
        component("inference", "wolf_phc", delta_win=0.5)
    with pytest.warns(QuestionableConfigWarning, match="plain policy hill-climbing"):
        play(three_states(1, 1), component("inference", "wolf_phc", delta_win=0.01))
    coins = component("dataset", "coin_game", size=3, moves=4, episodes=2).load(
        Streams(0), Setting(None, torch.device("cpu"), torch.float64, 2)
    )
    coins.attacker = component("attacker", "fixed_policy", plays="random")
    with pytest.raises(ConfigMismatchError, match="states have no numbers here"):
        play(
            coins,
            component("inference", "wolf_phc"),
            model=component("model", "q_linear").build(coins, Streams(0)),
        )
