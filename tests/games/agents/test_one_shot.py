"""One-shot equilibria compared with enumerated deviations, and with the correct statements of the
appendices."""

import itertools

import numpy as np
import pytest
import torch
from support.runs.configured import component
from support.small.small_games import game_of, play

from components.errors import ConfigMismatchError
from components.games.equilibria.bimatrix import mixtures
from components.games.equilibria.matrix_games import best_commitment, equilibria, maximin
from runner.execution.rng import Streams


def one_shot(**changes):
    return component("inference", "one_shot", **changes)


def solve(tax=0.0, **changes):
    game = game_of("data_sharing", 1, memory=0, **changes)
    values = component("model", "q_table").build(game, Streams(0))
    mind = one_shot(tax=tax).sit(values, game.seat(None, values), Streams(0))
    return {name.split("/")[1]: float(score[0]) for name, score in mind.scores.items()}


def enumerate_equilibria(r_a, r_b):
    """P(first action) of both in every equilibrium of a 2 × 2 game, by enumeration of pairs and of
    indifference conditions."""
    results = []
    for a, b in itertools.product(range(2), repeat=2):
        if r_a[a, b] >= r_a[1 - a, b] and r_b[a, b] >= r_b[a, 1 - b]:
            results.append((1.0 - a, 1.0 - b))
    slope_b = r_b[0, 0] - r_b[0, 1] - r_b[1, 0] + r_b[1, 1]
    slope_a = r_a[0, 0] - r_a[0, 1] - r_a[1, 0] + r_a[1, 1]
    x = (r_b[1, 1] - r_b[1, 0]) / slope_b
    y = (r_a[1, 1] - r_a[0, 1]) / slope_a
    return [*results, (x, y)] if 0 < x < 1 and 0 < y < 1 else results


def games(n, seed=0):
    """T, R, P, S, x, I of random data sharing games, T > R > P > S ≥ 0."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        S, P, R, T = np.sort(rng.uniform(0, 6, size=4))
        yield T, R, P, S, rng.uniform(0, 1), rng.uniform(0, 2)


def tax_rewards(T, R, P, S, x, incentive, on):
    """Rewards of the row player after the tax: section 4.5.4 and 4.C (all), 4.B (defectors); those
    of the column player are the transpose."""

    rewards = np.array([[R + incentive, S], [T, P]])
    defects = np.array([[0, 0], [1, 1]])
    rate = x if on == "all" else x * defects
    taxes = rate * rewards
    return rewards - taxes + (taxes + taxes.T) / 2


@pytest.mark.parametrize("n", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("on", ["all", "defectors"])
def test_no_deviation_beats_an_equilibrium(on, n):
    """Enumeration of supports and enumeration of deviations give the same pairs."""
    for game in games(n):
        rewards = tax_rewards(*game, on)
        strategies = sorted((float(e.x[0]), float(e.y[0])) for e in equilibria(rewards, rewards.T))
        exact = sorted(enumerate_equilibria(rewards, rewards.T))
        assert len(strategies) == len(exact)
        assert np.allclose(strategies, exact)


@pytest.mark.parametrize("on", ["all", "defectors"])
def test_solutions_follow_market_rules(on):
    for T, R, P, S, x, incentive in games(8, seed=1):
        keys = {"T": T, "R": R, "P": P, "S": S, "incentive": incentive, "tax_on": on}
        scores = solve(x, **keys)
        rewards = tax_rewards(T, R, P, S, x, incentive, on)
        pairs = enumerate_equilibria(rewards, rewards.T)
        mixed = [p for p, _ in pairs if 0 < p < 1]
        expected = {
            "number": len(pairs),
            "both_first": float((1, 1) in pairs),
            "both_last": float((0, 0) in pairs),
            "apart": ((1, 0) in pairs) + ((0, 1) in pairs),
            "mixed": len(mixed),
            "temptation": rewards[1, 0] - rewards[0, 0],
        }
        expected |= {"mixed_first": mixed[0]} if mixed else {}
        thresholds = {name: v for name, v in scores.items() if name.startswith("tax")}
        assert scores == pytest.approx(expected | thresholds)


@pytest.mark.parametrize("on", ["all", "defectors"])
@pytest.mark.parametrize("payoffs", [(6, 5, 1, 0), (6, 5.5, 2, 0), (6, 4, 1, 0), (5, 4, 1.5, 0)])
def test_thresholds_match_appendices(on, payoffs):
    T, R, P, S = payoffs
    scores = solve(T=float(T), R=float(R), P=float(P), S=float(S), tax_on=on)
    assert scores["tax_both_first"] == pytest.approx(2 * (1 - R / T))
    assert scores["tax_both_last"] == pytest.approx(2 * (P - S) / T)


def make_opponent(**changes):
    return component("attacker", "learner", agent=one_shot(**changes))


@pytest.mark.parametrize(("plays", "reward"), [("best", 5.5), ("worst", 2.0)])
def test_both_play_their_side_of_one_equilibrium(plays, reward):
    taxed = component(
        "attacker",
        "regulator",
        policy="constant",
        rate=0.4,
        regulates=make_opponent(tax=0.4, plays=plays),
    )
    game = game_of("data_sharing", 3, taxed, memory=0, R=5.5, P=2.0, episodes=5)
    _, posterior = play(game, one_shot(tax=0.4, plays=plays))
    assert posterior.rewards.tolist() == [[reward] * 5] * 3


def test_players_coordinate_on_asymmetric_equilibrium():
    chicken = {"payoffs": "chicken", "P": 0.0, "S": 1.0, "memory": 0, "episodes": 4}
    game = game_of("iterated_matrix", 2, make_opponent(), **chicken)
    _, posterior = play(game, one_shot())
    assert (posterior.rewards + posterior.opponent_rewards[0] == 7).all()  # T + S, never a crash
    assert "equilibria/tax_both_first" not in posterior.beliefs


@pytest.mark.parametrize(
    ("name", "changes", "tax", "message"),
    [
        ("friend_or_foe_grid", {}, 0.0, "tabular games with two players and one move"),
        ("blotto", {}, 0.0, "tabular games with two players and one move"),
        ("iterated_matrix", {"memory": 0}, 0.2, r"inference.tax=0.2 .*no taxes"),
    ],
)
def test_games_without_a_solution_are_refused(name, changes, tax, message):
    with pytest.raises(ConfigMismatchError, match=message):
        play(game_of(name, 2, **changes), one_shot(tax=tax))


def best_leader_payoff(r_a, r_b):
    """The leader's best payoff over all vertices of the regions in which a reply is best."""
    x = mixtures(torch.tensor(r_b)[None])[0].numpy()
    x = x[~np.isnan(x).any(1)]
    replies = x @ r_b
    best = replies >= replies.max(1, keepdims=True) - 1e-9
    return float(np.where(best, x @ r_a, -np.inf).max())


@pytest.mark.parametrize("seed", range(6))
def test_leader_payoff_is_optimal(seed):
    rng = np.random.default_rng(seed)
    r_a, r_b = rng.normal(size=(2, 3, 4))
    x, y = best_commitment(r_a, r_b)
    assert x.sum() == pytest.approx(1)
    assert x.min() >= -1e-12
    assert (x @ r_b @ y) == pytest.approx((x @ r_b).max())  # the reply is a best response
    lead = x @ r_a @ y
    assert lead == pytest.approx(best_leader_payoff(r_a, r_b))
    assert lead >= max(pair.x @ r_a @ pair.y for pair in equilibria(r_a, r_b)) - 1e-9


def test_leading_gains_nothing_in_zero_sum_games():
    r = np.random.default_rng(1).normal(size=(3, 4))
    x, y = best_commitment(r, -r)
    assert x @ r @ y == pytest.approx(float(maximin(torch.tensor(r)).value))


CONITZER = [[[1, 1], [3, 0]], [[0, 0], [2, 1]]]  # Nash: 1, pure commitment 2, mixed 2.5


def test_leader_mixes_and_opponent_best_responds():
    keys = {"bimatrix": CONITZER, "memory": 0, "episodes": 100}
    game = game_of("iterated_matrix", 4, make_opponent(plays="lead"), **keys)
    state, posterior = play(game, one_shot(plays="lead"))
    assert state.mind.strategy[0].tolist() == pytest.approx([0.5, 0.5])
    assert set(posterior.rewards.unique().tolist()) == {2.0, 3.0}  # only the second column
    assert abs(float(posterior.rewards.mean()) - 2.5) < 4 * 0.5 / 400**0.5
    assert float(posterior.beliefs["equilibria/lead"][0]) == pytest.approx(2.5)
    assert float(posterior.beliefs["equilibria/lead_gain"][0]) == pytest.approx(1.5)
