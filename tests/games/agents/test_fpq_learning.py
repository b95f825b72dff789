import numpy as np
import pytest
import torch
from scipy import integrate
from support.runs.configured import F64, component, double, generator
from support.small.literal_games import greedy, literal_moves
from support.small.small_games import (
    Stationary,
    assert_near,
    friend_or_foe,
    mean_and_se,
    play,
    three_states,
)
from torch.nn.functional import one_hot
from torch.testing import assert_close

from components.games.agents.fictitious_play import count, mean_forecast


@pytest.mark.parametrize("forget", [1.0, 0.8])
def test_updates_match_equations_4_2_and_4_3(forget):
    game = three_states(replicates=3, episodes=60)
    state, posterior = play(game, component("inference", "fpq_learning", forget=forget))
    for i in range(3):
        q = np.zeros((3, 2, 3))
        counts = np.ones((3, 3))

        def psi(s, q=q, counts=counts):
            return q[s] @ (counts[s] / counts[s].sum())  # eq. (4.3)

        for s, a, b, r, _, s_next in literal_moves(game, i, lambda s, psi=psi: greedy(psi(s), 0.1)):
            counts[s] *= forget  # Algorithm 4.4, line 3
            counts[s, b] += 1  # line 5
            # eq. (4.2)
            q[s, a, b] = 0.9 * q[s, a, b] + 0.1 * (r + 0.8 * max(psi(s_next)))
        assert_near(state.mind.q[0].values[i], q)
        assert_near(state.mind.counts[i], counts)
        assert_near(posterior.values[i], psi(s_next))


def test_forecast_without_forgetting_is_posterior_mean():
    """Dirichlet(2, 3) prior and 7 observed threats against ∫ p · p^h (1 − p)^(n − h) Dir(p) dp, by
    quadrature."""
    counts = double([[[2.0, 3.0]]])
    s = torch.zeros(1, dtype=torch.long)
    actions = [0, 1, 1, 0, 0, 0, 1]
    for b in actions:
        count(counts, s, one_hot(torch.tensor([b]), 2).double(), forget=1.0)

    def density(p):
        value = p ** (2 - 1) * (1 - p) ** (3 - 1)
        for b in actions:
            value *= p if b == 0 else 1 - p
        return value

    mean = integrate.quad(lambda p: p * density(p), 0, 1)[0] / integrate.quad(density, 0, 1)[0]
    assert float(mean_forecast(counts, s)[0, 0]) == pytest.approx(mean, abs=1e-9)


def test_forgetting_weighs_observations_by_age():
    actions = torch.randint(0, 3, (40,), generator=generator(0))
    counts = torch.ones(1, 1, 3, dtype=F64)
    forget = 0.8
    for b in actions:
        count(counts, torch.tensor([0]), one_hot(b[None], 3).double(), forget)
    ages = torch.arange(39, -1, -1)
    expected = forget**40 + (forget ** ages.double()) @ one_hot(actions, 3).double()
    assert_near(counts[0, 0], expected)
    # "just the last 1/(1 − λ) opponent actions"
    assert counts.sum() == pytest.approx(1 / (1 - forget), rel=1e-3)


def test_agent_best_responds_to_stationary_opponent():
    """The opponent hides the reward in box 1 with probability 0.8: the agent learns box 1, up to ε,
    and the opponent's probabilities."""
    game = friend_or_foe(replicates=40, episodes=1500)
    game.attacker = Stationary(p=[0.8, 0.2])
    _, posterior = play(game, component("inference", "fpq_learning", forget=1.0))
    mean, se = mean_and_se(game.score(posterior, None)["reward"])
    best = 0.95 * (0.8 * 50 - 0.2 * 50) + 0.05 * (0.2 * 50 - 0.8 * 50)
    assert abs(mean - best) < 4 * se
    assert (posterior.values.argmax(1) == 0).all()
    assert abs(float(posterior.forecast[:, 0].mean()) - 0.8) < 4 * (0.16 / 1500 / 40) ** 0.5


def test_table_without_future_learns_payoffs():
    game = three_states(replicates=4, episodes=400)
    state, _ = play(game, component("inference", "fpq_learning", alpha=1.0, gamma=0.0, epsilon=1.0))
    visited = state.mind.q[0].values != 0
    assert visited.any()
    assert_close(
        state.mind.q[0].values[visited], game.environment.reward_a.expand(4, -1, -1, -1)[visited]
    )


@pytest.mark.parametrize(
    "belief",
    [
        "by_state",
        {"name": "markov_chains", "weights": [1.0, 1.0, 1.0], "learn": False},
        {"name": "bloom", "cells": 101, "hashes": 2, "bits": 8},
    ],
)
def test_prior_is_first_forecast(belief):
    """α⁰ = (6, 3, 1): p(b) = α⁰_b / Σ α⁰, and its weight: after one b = 2, p = (6, 3, 2)/11."""
    agent = component("inference", "fpq_learning", prior=[6.0, 3.0, 1.0], belief=belief)
    state, _ = play(three_states(2, 0), agent)
    p = agent.forecast_opponent(state.mind, state.standing.s, 0)
    assert_close(p, p.new_tensor([[0.6, 0.3, 0.1]]).expand(2, -1))
    if belief == "by_state":
        counts = state.mind.counts
        count(counts, state.standing.s, one_hot(torch.tensor([2, 2]), 3).to(counts), 1.0)
        forecast = agent.forecast_opponent(state.mind, state.standing.s, 1)
        assert_close(forecast, p.new_tensor([[6, 3, 2]]).expand(2, -1) / 11)
