"""Exact results for the data sharing game: one-shot equilibria under taxes and incentives (Gallego
4.B and 4.C), thresholds of a citizen's cooperation with a forgiving opponent, and terms of
welfare."""

from itertools import product

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component
from support.small.small_games import game_of, play
from torch.testing import assert_close

from components.games.equilibria.matrix_games import equilibria

C = 0
D = 1
CC = ("C", "C")
CD = ("C", "D")
DC = ("D", "C")
DD = ("D", "D")


def market(replicates=4, **keys):
    return game_of("data_sharing", replicates, **({"memory": 0} | keys))


def tax_rewards(rate, players=2, **keys):
    """Rewards after tax and with the incentive [2, …, 2, k] by joint action, from the
    environment."""
    environment = market(players=players, **keys).environment
    actions = torch.cartesian_prod(*[torch.arange(2)] * players)
    a = actions[:, 0]
    b = actions[:, 1:]
    outcome = environment.step(torch.zeros_like(a), a, b, torch.Generator())
    rates = torch.full((len(a),), rate, dtype=F64)
    outcome = environment.after_tax(outcome, a, b, rates)
    rewards = torch.cat([outcome.r_a.unsqueeze(1), outcome.r_b], 1)
    return rewards.view(*[2] * players, players).numpy()


def bimatrix(rate, **keys):
    """Payoffs of both players [2, 2] after tax."""
    return np.moveaxis(tax_rewards(rate, **keys), -1, 0)


def find_equilibria(rate, **keys):
    """Pure equilibria, and the number of mixed ones."""
    solutions = equilibria(*bimatrix(rate, **keys))
    pure = {("CD"[e.x.argmax()], "CD"[e.y.argmax()]) for e in solutions if e.pure}
    return pure, sum(not e.pure for e in solutions)


def printed_equilibria(x, T, R, P, S):
    """Only defectors pay x: the printed intervals, and the one omitted in the section."""
    # thresholds for the advantage of D against a cooperator, and against a defector
    temptation = 2 * (1 - R / T)
    fear = 2 * (P - S) / T
    if x < min(temptation, fear):
        return {DD}, 0
    if x > max(temptation, fear):
        return {CC}, 0
    # stag hunt, not printed | coordination
    return ({CC, DD}, 1) if x > temptation else ({CD, DC}, 1)


def payoffs(rng):
    """T > R > P > S >= 0 and 2R > T + S."""
    while True:
        S, P, R, T = np.sort(rng.uniform(0, 8, 4))
        if 2 * R > T + S:
            return {"T": float(T), "R": float(R), "P": float(P), "S": float(S)}


@pytest.mark.filterwarnings("error")
def test_equilibria_match_tax_on_defectors():
    rng = np.random.default_rng(0)
    profiles = set()
    for _ in range(150):
        pays = payoffs(rng)
        x = float(rng.uniform(0, 1))
        expected = printed_equilibria(x, **pays)
        assert find_equilibria(x, tax_on="defectors", **pays) == expected, (pays, x)
        profiles.add(frozenset(expected[0]))
    assert profiles == {frozenset({DD}), frozenset({CC}), frozenset({CC, DD}), frozenset({CD, DC})}
    # The printed condition of a prisoner's dilemma, x < 2(P − S)/T, is wrong if temptation vanishes
    # before fear.
    pays = {"T": 6.0, "R": 5.5, "P": 3.0, "S": 1.0}
    assert 2 * (1 - 5.5 / 6) < 0.4 < 2 * (3 - 1) / 6
    assert find_equilibria(0.4, tax_on="defectors", **pays) == ({CC, DD}, 1)


def test_equilibria_match_tax_on_all_with_incentives():
    """Both cooperate in an equilibrium iff I > T − R − x(T − S)/2, whether or not the first
    condition of 4.C holds."""
    rng = np.random.default_rng(1)
    without_the_first = 0
    for _ in range(150):
        pays = payoffs(rng)
        x = float(rng.uniform(0, 1))
        given = float(rng.uniform(0, 2))
        pure, _ = find_equilibria(x, tax_on="all", incentive=given, incentive_until=1, **pays)
        T, R, P, S = (pays[name] for name in "TRPS")
        assert (CC in pure) == (given > T - R - x * (T - S) / 2)
        without_the_first += CC in pure and x <= 2 * (P - S) / (T - S)
    assert without_the_first > 10


def advantage_of_cooperation(gamma, forgives):
    """Q*(s, C) − Q*(s, D) against a forgiving tit for tat in each state [S], by value iteration on
    the tables of the game."""
    environment = market(memory=1).environment
    her_last = torch.tensor([C, C, D, D, C])  # in CC, CD, DC, DD, and at the start
    cooperates = forgives + (1 - forgives) * (her_last == C).double()
    p = torch.stack([cooperates, 1 - cooperates], -1)  # p(b|s) [S, B]
    v = torch.zeros(5, dtype=F64)
    for _ in range(600):
        q = torch.einsum("sab,sb->sa", environment.reward_a + gamma * v[environment.transition], p)
        v = q.amax(-1)
    return q[:, C] - q[:, D]


def test_cooperation_ends_at_discount_threshold():
    """Cooperation is better by γ(1 − p)·5 − 1 in every state: the sign changes at p = 0.75 for γ =
    0.8, and at 0.792 for γ = 0.96."""
    for gamma in (0.15, 0.7, 0.8, 0.96):
        for p in (0.0, 0.3, 0.7, 0.74, 0.76, 0.8, 1.0):
            advantage = advantage_of_cooperation(gamma, p)
            assert advantage.tolist() == pytest.approx([gamma * (1 - p) * 5 - 1] * 5, abs=1e-9)


@pytest.mark.parametrize("forgives", [0.4, 0.85])
def test_learner_finds_its_side_of_threshold(forgives):
    """Values after pure exploration have the advantage from value iteration."""
    opponent = component("attacker", "tit_for_tat", forgives=forgives)
    game = game_of("data_sharing", 20, opponent, episodes=5000)
    agent = component("inference", "fpq_learning", alpha=1.0, gamma=0.8, epsilon=1.0, forget=1.0)
    _, posterior = play(game, agent)
    values = torch.stack([posterior.values_at(torch.full((20,), s)) for s in range(4)])  # [S, R, A]
    gain = (values[..., C] - values[..., D]).mean(1)
    assert gain.tolist() == pytest.approx([0.8 * (1 - forgives) * 5 - 1] * 4, abs=0.05)


@pytest.mark.parametrize("incentive", [0.0, 1.0])
def test_welfare_depends_only_on_cooperation(incentive):
    """SU = 1 + 2(c + d) for all taxes and incentives, with c and d the shares of rounds in which
    each player cooperates."""
    game = market(20, episodes=60, incentive=incentive, incentive_until=40)
    members = [
        component("attacker", "fixed_policy", plays=[0.3, 0.7]),
        component("attacker", "regulator", policy="constant", rate=0.4),
    ]
    game.attacker = component("attacker", "together", members=members)
    _, posterior = play(game, component("inference", "q_learning", epsilon=0.5))
    c, d = posterior.firsts
    assert_close(posterior.opponent_rewards[-1], 1 + 2 * (c + d))
    both = ((c + d) == 2).double()
    both[:, 40:] = 0
    mean = (posterior.rewards + posterior.opponent_rewards[0]) / 2
    assert_close(mean - posterior.opponent_rewards[-1], incentive * both)


PAIR = np.array([[5.0, 0.0], [6.0, 1.0]])


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("payers", ["all", "defectors"])
def test_k_players_meet_in_pairs_and_share_tax(players, payers):
    """r_i the mean of i's pairs, r̃_i = r_i − τ_i r_i + k⁻¹ Σ_j τ_j r_j."""
    net = tax_rewards(0.3, players, tax_on=payers)
    for actions in product((C, D), repeat=players):
        own_actions = np.array(actions)
        met = PAIR[own_actions[:, None], own_actions]
        rewards = (met.sum(1) - np.diag(met)) / (players - 1)
        taxes = 0.3 * rewards * ((payers == "all") | (own_actions == D))
        assert net[actions] == pytest.approx(rewards - taxes + taxes.sum() / players)
        assert net[actions].sum() == pytest.approx(rewards.sum())


@pytest.mark.parametrize(
    ("players", "payers"), [(2, "all"), (2, "defectors"), (3, "all"), (4, "all"), (5, "all")]
)
def test_cooperation_of_k_players_pays_above_threshold(players, payers):
    """For all actions of the others, by enumeration, with T 6, R 5, P 1, S 0; above ½, the maximum
    of a Gaussian regulator, for k ≥ 5."""
    threshold = players / (players + 4)
    for rate in (threshold - 0.2, threshold, threshold + 0.01):
        net = tax_rewards(rate, players, tax_on=payers)
        gain = (1 + 4 / players) * (rate - threshold)
        assert net[C, ..., 0] - net[D, ..., 0] == pytest.approx(gain)
        assert net[..., C, -1] - net[..., D, -1] == pytest.approx(gain)


def test_three_players_learn_under_a_regulator():
    """If all cooperate, all get incentives, and welfare is the mean of the three."""
    game = market(6, episodes=30, players=3, incentive=1.0, incentive_until=30)
    learner = component("attacker", "learner", agent=component("inference", "policy_gradient"))
    game.attacker = component(
        "attacker", "regulator", policy="constant", rate=0.5, regulates=learner
    )
    _, posterior = play(game, component("inference", "policy_gradient"))
    assert posterior.opponent_rewards.shape == (3, 6, 30)
    total = posterior.rewards + posterior.opponent_rewards[:2].sum(0)
    given = 3.0 * (posterior.firsts.sum(0) == 3)
    assert_close(total - given, 3 * posterior.opponent_rewards[-1])
    pairs = posterior.firsts.sum(0)  # SU = 1 + 4 c/3 with c cooperators
    assert_close(posterior.opponent_rewards[-1], 1 + 4 * pairs / 3)
