"""Literal versions of level-k players that respond to draws, of forecasts made at s, and of an
uncertain exploration rate."""

import itertools

import numpy as np
import pytest
import torch
from support.runs.configured import component, double, uniform
from support.small.literal_games import draws, greedy, invert
from support.small.small_games import assert_near, friend_or_foe, mean_and_se, play, three_states

from components.games.agents.exploration import ModelledPlayerExploration, exploration_rate
from components.games.agents.policies import probabilities
from runner.execution.rng import Streams


def mixed(table, believed, epsilon):
    """Σ_o p(o) ε-greedy(Q(·, o))."""
    return np.stack([greedy(column, epsilon) for column in table.T], 1) @ believed


@pytest.mark.parametrize("at", ["next", "current"])
def test_level_3_responds_to_draws_of_level_2(at):
    game = three_states(replicates=3, episodes=50)
    keys = {
        "level": 3,
        "forecast": "sampled",
        "forecast_at": at,
        "alpha": 0.1,
        "alpha_opponent": 0.2,
    }
    method = component("inference", "level_k", epsilon_opponent={"mean": 0.3, "rise": 0.2}, **keys)
    state, posterior = play(game, method)
    rng = Streams(0)
    # of the agent's action, level 2's draw, and the agent's own [T, 3, R]
    uniforms = [uniform(rng.noise, 3, 1) for _ in range(150)]
    draw = torch.stack(uniforms).view(50, 3, 3).tolist()
    _, threats = draws(game)
    rules = game.environment
    for i in range(3):
        q1 = np.zeros((3, 2, 3))  # Q₁(s, a, b): level 1 is the agent, as level 2 sees it
        q2 = np.zeros((3, 3, 2))  # Q₂(s, b, a)
        q3 = np.zeros((3, 2, 3))  # Q₃(s, a, b)
        counts = np.ones((3, 3))

        def p1(s, counts=counts):
            return counts[s] / counts[s].sum()

        def policy_1(s, q1=q1, p1=p1):  # a level-1 player uses an expectation
            return greedy(q1[s] @ p1(s), 0.3)

        def policy_2(s, q2=q2, policy_1=policy_1):
            return mixed(q2[s], policy_1(s), 0.5)

        s = 0
        for t in range(50):
            u = [draw[t][k][i] for k in range(3)]
            a = invert(mixed(q3[s], policy_2(s), 0.1), u[0])
            b = threats[t][i]
            r_a = float(rules.reward_a[s, a, b])
            r_b = float(rules.reward_b[s, a, b, 0])
            s_next = int(rules.transition[s, a, b])
            where = s_next if at == "next" else s
            counts[s, b] += 1
            q1[s, a, b] = 0.8 * q1[s, a, b] + 0.2 * (r_a + 0.8 * max(q1[s_next] @ p1(s_next)))
            o = invert(policy_1(where), u[1])
            q2[s, b, a] = 0.8 * q2[s, b, a] + 0.2 * (r_b + 0.8 * max(q2[s_next][:, o]))
            o = invert(policy_2(where), u[2])
            q3[s, a, b] = 0.9 * q3[s, a, b] + 0.1 * (r_a + 0.8 * max(q3[s_next][:, o]))
            s = s_next
        for q, q_after in zip((q1, q2, q3), state.mind.q, strict=True):
            assert_near(q_after.values[i], q)
        assert_near(posterior.forecast[i], policy_2(s))


def test_uncertain_epsilon_enters_by_its_mean():
    """E[policy of ε] = policy of E[ε]: p_k(ε) in 4.3.2 does not otherwise enter the forecast."""
    psi = double([[1.0, 3.0, 2.0]])
    each = torch.cat([probabilities(psi, "epsilon_greedy", e, 1.0) for e in (0.1, 0.2, 0.6)])
    torch.testing.assert_close(
        each.mean(0, keepdim=True), probabilities(psi, "epsilon_greedy", 0.3, 1.0)
    )
    rising = ModelledPlayerExploration(mean=0.1, rise=0.4)
    assert [exploration_rate(rising, 7, level) for level in (1, 2, 3, 4)] == pytest.approx(
        [0.1, 0.5, 0.9, 1.0]
    )


def test_modelled_players_have_own_temperature():
    game = three_states(replicates=4, episodes=30)
    softmax = {"policy": "softmax", "policy_opponent": "softmax", "temperature": 2.0}
    _, shared = play(game, component("inference", "level_k", **softmax))
    _, same = play(game, component("inference", "level_k", **softmax, temperature_opponent=2.0))
    _, other = play(game, component("inference", "level_k", **softmax, temperature_opponent=0.1))
    assert torch.equal(shared.rewards, same.rewards)
    assert torch.equal(shared.forecast, same.forecast)
    assert not torch.allclose(shared.forecast, other.forecast)


def test_averaging_responds_to_draws_of_every_model():
    """The policy is E over b¹ ~ p_1, b² ~ p_2 of the ε-greedy policy of Σ_i p(M_i) Q_i(s, ·,
    bⁱ)."""
    method = component("inference", "model_averaging", forecast="sampled")
    state, _ = play(three_states(5, 40), method)
    s = state.standing.s
    mind = state.mind
    actual = method.policy_at(mind, s, 39)
    types = list(zip(method._build_thinkers(), mind.types, strict=True))
    for r in range(5):
        p = [thinker.forecast_opponent(held, s, 39)[r].numpy() for thinker, held in types]
        q = [held.q[-1].q(s)[r].numpy() for held in mind.types]
        belief = method.belief(mind)[r].numpy()
        policy = np.zeros(2)
        for b1, b2 in itertools.product(range(3), repeat=2):
            psi = belief[0] * q[0][:, b1] + belief[1] * q[1][:, b2]
            policy += p[0][b1] * p[1][b2] * greedy(psi, 0.1)
        assert_near(actual[r], policy)


def test_sampled_level_2_matches_published_reward():
    """For β = 0.75 the author's published figure shows 37 (± 0.5); the expected forecast gets
    43.5."""
    game = friend_or_foe(replicates=100, episodes=2500, beta=0.75)
    mean, se = mean_and_se(
        play(game, component("inference", "level_k", forecast="sampled"))[1]
        .rewards[:, -500:]
        .mean(1)
    )
    assert abs(mean - 37) < 0.5 + 3 * se
