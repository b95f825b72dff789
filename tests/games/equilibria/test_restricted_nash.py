"""Restricted Nash responses compared with a literal version, at both extremes of trust, and on the
frontier with a linear programme.
"""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from support.runs.configured import component
from support.small.literal_games import literal_moves, safest_policy
from support.small.small_games import assert_near, matrix_game, play, programme, three_states
from torch.testing import assert_close

from components.games.equilibria.bimatrix import mixtures
from components.games.equilibria.matrix_games import maximin

TRUSTS = (0.0, 0.3, 0.6, 0.8, 0.95, 1.0)


def agent(trust, forecaster="fpq_learning", keys=None, **others):
    forecasts = component("inference", forecaster, **(keys or {}))
    return component("inference", "restricted_nash", trust=trust, forecaster=forecasts, **others)


def restrict_game(table, forecast, p):
    """G(a, b) = p Σ_b′ y(b′) Q(a, b′) + (1 − p) Q(a, b)."""
    return p * (table @ forecast)[:, None] + (1 - p) * table


def test_update_solves_restricted_game():
    game = three_states(replicates=2, episodes=8)
    state, _ = play(game, agent(0.6))
    forget = component("inference", "fpq_learning").forget
    for i in range(2):
        q = np.zeros((3, 2, 3))
        counts = np.ones((3, 3))  # of the forecaster, in each state

        def solve(s, q=q, counts=counts):
            return safest_policy(restrict_game(q[s], counts[s] / counts[s].sum(), 0.6))

        def policy(s, solve=solve):
            return 0.9 * solve(s)[1] + 0.1 / 2

        for s, a, b, r, _, s_next in literal_moves(game, i, policy):
            counts[s] *= forget
            counts[s, b] += 1
            q[s, a, b] = 0.9 * q[s, a, b] + 0.1 * (r + 0.8 * solve(s_next)[0])
        assert_near(state.mind.q.values[i], q)


@pytest.mark.parametrize("forecaster", ["fpq_learning", "level_k"])
def test_full_trust_is_response_of_forecaster(forecaster):
    mine, posterior = play(three_states(3, 40), agent(1.0, forecaster))
    theirs, exact = play(three_states(3, 40), component("inference", forecaster))
    assert torch.equal(posterior.rewards, exact.rewards)
    assert_close(mine.mind.q.values, theirs.mind.q[-1].values)
    assert_close(posterior.values, exact.values)
    assert_close(posterior.forecast, exact.forecast)


def test_no_trust_is_minimax_q():
    mine, posterior = play(three_states(3, 40), agent(0.0, "level_k"))
    theirs, exact = play(three_states(3, 40), component("inference", "minimax_q"))
    assert torch.equal(posterior.rewards, exact.rewards)
    assert_close(mine.mind.q.values, theirs.mind.q.values)


def largest_value(r, y, least):
    """max_x xᵀ r y over distributions x with min_b (xᵀ r)(b) ≥ least."""
    solution = linprog(
        -(r @ y),
        A_ub=-r.T,
        b_ub=np.full(r.shape[1], -least + 1e-9),
        A_eq=np.ones((1, len(r))),
        b_eq=[1.0],
    )
    return -solution.fun


@pytest.mark.parametrize("seed", range(3))
def test_reward_is_maximal_for_its_exploitability(seed):
    """The frontier over p is computed by linear programmes and by enumeration of the vertices of
    {(x, v): xᵀ r ≥ v}."""
    rng = np.random.default_rng(seed)
    r = rng.normal(size=(4, 3))
    y = rng.dirichlet(np.ones(3))
    vertices = mixtures(torch.tensor(r)[None])[0].numpy()
    vertices = vertices[~np.isnan(vertices).any(1)]
    points = []
    for p in TRUSTS:
        solved = maximin(torch.tensor(restrict_game(r, y, p)))
        x = solved.strategy.numpy()
        earned = x @ r @ y
        least = (x @ r).min()
        assert earned == pytest.approx(largest_value(r, y, least), abs=1e-6)
        each = p * (vertices @ r @ y) + (1 - p) * (vertices @ r).min(1)
        assert float(solved.value) == pytest.approx(each.max(), abs=1e-9)
        points.append((earned, programme(r)[0] - least))
    earned, exploitable = np.array(points).T
    assert (np.diff(earned) >= -1e-9).all()
    assert (np.diff(exploitable) >= -1e-9).all()
    assert exploitable[0] == pytest.approx(0, abs=1e-9)
    assert earned[-1] == pytest.approx((r @ y).max())


def test_learnt_game_reaches_the_frontier():
    """Asymmetric rock, paper, scissors against a fixed opponent that the agent learns to
    forecast."""
    r = [[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]]
    y = [0.5, 0.3, 0.2]
    opponent = component("attacker", "fixed_policy", plays=y)
    game = matrix_game(r, replicates=2, episodes=150, opponent=opponent)
    method = agent(0.6, keys={"forget": 1.0}, alpha=1.0, gamma=0.0, epsilon=1.0)
    state, posterior = play(game, method)
    pi = method.mixture(state.mind, state.standing.s)
    for i in range(2):
        forecast = posterior.forecast[i].numpy()
        assert forecast == pytest.approx(np.array(y), abs=0.15)
        payoffs = np.array(r)
        least = float((pi[i].numpy() @ payoffs).min())
        earned = pi[i].numpy() @ payoffs @ forecast
        assert earned == pytest.approx(largest_value(payoffs, forecast, least), abs=1e-6)


def test_equilibrium_earns_the_value_of_the_game():
    """Each move of the opponent has the value 0 against the equilibrium; the exact sum over moves
    has no noise, unlike the rewards of some rounds."""
    r = [[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]]
    opponent = component("attacker", "fixed_policy", plays=[0.5, 0.3, 0.2])
    game = matrix_game(r, replicates=5, episodes=150, opponent=opponent)
    keys = {"keys": {"forget": 1.0}, "alpha": 1.0, "gamma": 0.0}
    explored = {"epsilon": {"start": 1.0, "factor": 0.5, "every": 5}}
    by_trust = [game.score(play(game, agent(p, **keys, **explored))[1], None) for p in (0.0, 1.0)]
    equilibrium, best = (table["expected_reward"] for table in by_trust)
    assert_close(equilibrium, torch.zeros_like(equilibrium), atol=1e-6, rtol=0)
    assert float(best.median()) == pytest.approx(0.3)
    assert by_trust[0]["reward"].abs().max() > 0.05


def test_method_without_forecast_is_refused():
    with pytest.raises(ValueError, match=r"q_learning .*; use one of level_k"):
        agent(0.5, "q_learning")
