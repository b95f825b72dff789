"""Opponents that never learn, that are omniscient, and that are decision makers themselves."""

import itertools
from pathlib import Path

import pytest
import torch
from scipy.optimize import linprog
from support.runs.configured import F64, component, double, generator, uniform
from support.small.literal_games import greedy, invert
from support.small.small_games import (
    friend_or_foe,
    move_of,
    play,
    seat_of,
    three_states,
)
from torch.testing import assert_close

from components.contracts.games import Turn
from components.contracts.roles import Setting
from components.errors import ConfigMismatchError, DataUnavailableError
from components.games.opponents.oracle import best_response
from runner.execution.rng import Streams

SETTING = Setting(Path(), torch.device("cpu"), F64, 30)


def seat(n_own=2, n_agent=2, replicates=5, environment=None):
    return seat_of(replicates, n_own, (n_agent,), 2, environment)


def make_turn(replicates=5, policy=None):
    return Turn(torch.zeros(replicates, dtype=torch.long), 0, policy)


def game(name, attacker, **keys):
    data = component("dataset", name, **keys).load(Streams(0), SETTING)
    data.attacker = attacker
    return data


@pytest.mark.parametrize(
    ("plays", "own", "share"),
    [
        ("cooperate", 2, [1, 0]),
        ("defect", 3, [0, 0, 1]),
        ("random", 4, [0.25] * 4),
        ([0.2, 0.5, 0.3], 3, [0.2, 0.5, 0.3]),
    ],
)
def test_fixed_policy_has_configured_frequencies(plays, own, share):
    player = component("attacker", "fixed_policy", plays=plays)
    rng = Streams(0)
    state = player.reset(seat(own, replicates=20_000), rng)
    frequency = torch.bincount(player.act(state, make_turn(), rng), minlength=own) / 20_000
    assert frequency.tolist() == pytest.approx(share, abs=0.015)


def test_tit_for_tat_copies_previous_action():
    player = component("attacker", "tit_for_tat")
    rng = Streams(0)
    state = player.reset(seat(), rng)
    assert player.act(state, make_turn(), rng).tolist() == [0] * 5
    for a in ([1, 0, 1, 0, 1], [0, 0, 1, 1, 0]):
        state = player.observe(state, move_of(torch.tensor(a)))
        assert player.act(state, make_turn(), rng).tolist() == a
    live = torch.tensor([True, False, True, True, True])
    after = player.observe(state, move_of(torch.ones(5).long(), live=live))
    assert after[:, 1].tolist() == [1, 0, 1, 1, 1]
    with pytest.raises(ConfigMismatchError, match="requires two actions on each side"):
        player.reset(seat(3), rng)


@pytest.mark.parametrize(("forgives", "errs"), [(0.7, 0.0), (0.0, 0.2), (0.4, 0.1)])
def test_forgiving_and_erring_have_configured_rates(forgives, errs):
    """After a defection the opponent cooperates with probability p(1 − q) + (1 − p)q."""
    player = component("attacker", "tit_for_tat", forgives=forgives, errs=errs)
    rng = Streams(1)
    n = 40_000
    state = player.observe(player.reset(seat(replicates=n), rng), move_of(torch.ones(n).long()))
    frequency = 1 - player.act(state, make_turn(n), rng).double().mean()
    exact = forgives * (1 - errs) + (1 - forgives) * errs
    assert abs(float(frequency) - exact) < 4 * (exact * (1 - exact) / n) ** 0.5


def test_replayed_actions_come_from_the_file(tmp_path):
    file = tmp_path / "actions.txt"
    file.write_text("0\n2\n1\n\n")
    player = component("attacker", "replayed", file=str(file))
    rng = Streams(0)
    state = player.reset(seat(3), rng)
    actions = []
    for _ in range(3):
        actions.append(player.act(state, make_turn(), rng).tolist())
        state = player.observe(state, move_of(torch.zeros(5).long()))
    assert actions == [[0] * 5, [2] * 5, [1] * 5]
    with pytest.raises(ConfigMismatchError, match="ends after 3 actions"):
        player.act(state, make_turn(), rng)
    for text, message in (
        ("0\nx\n", "line 2: 'x'"),
        ("3", "'3' .* 0 … 2"),
        ("0\n\n2\n", "line 2: '' is not"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigMismatchError, match=message):
            player.reset(seat(3), rng)
    with pytest.raises(DataUnavailableError, match="cannot be read"):
        component("attacker", "replayed", file=str(tmp_path / "none")).reset(seat(3), rng)


def best_reward(reward_b, p):
    """max_q Σ_ab p_a q_b r_B(a, b) over the simplex, by a linear programme."""
    gains = p @ reward_b
    solution = linprog(-gains, A_eq=[[1.0] * len(gains)], b_eq=[1.0], bounds=(0, 1))
    return -solution.fun


def test_oracle_best_responds_in_matrix_games():
    g = generator(0)
    for _ in range(20):
        world = three_states(6, 1).environment
        policy = uniform(g, 6, 3, 2)
        policy = policy / policy.sum(-1, keepdim=True)
        q = best_response(world, policy, 0.0)
        for r, s in itertools.product(range(6), range(3)):
            exact = best_reward(world.reward_b[s, :, :, 0].numpy(), policy[r, s].numpy())
            assert q[r, s].max() == pytest.approx(exact)


def test_oracle_plans_ahead():
    """Q = r + γ P max Q at the opponent's fixed point, compared with many plain sweeps; with γ = 0
    it differs."""
    world = three_states(2, 1).environment
    gamma = 0.9
    policy = torch.full((2, 3, 2), 0.5, dtype=F64)
    q = best_response(world, policy, gamma)
    v = torch.zeros(3, dtype=F64)
    for _ in range(600):
        after = world.reward_b[..., 0] + gamma * v[world.transition]  # [s, a, b]
        v = after.mean(1).amax(1)  # a is uniform
    assert_close(q.amax(-1)[0], v, rtol=0, atol=1e-7)
    assert (q - best_response(world, policy, 0.0)).abs().max() > 0.5


def test_oracle_exploits_known_pure_policy():
    player = component("attacker", "oracle")
    room = friend_or_foe(5, 1)
    state = player.reset(room.seat(0, None, 2), Streams(0))

    def first_box(s):
        return double([[1.0, 0.0]]).expand(len(s), -1)

    assert player.act(state, make_turn(policy=first_box), Streams(0)).tolist() == [1] * 5
    with pytest.raises(ConfigMismatchError, match="requires the agent's policy"):
        player.act(state, make_turn(), Streams(0))
    coins = component("dataset", "coin_game").load(Streams(0), SETTING)
    with pytest.raises(ConfigMismatchError, match="game in tables with one opponent"):
        player.reset(coins.seat(0, None, 4), Streams(0))


def test_learner_matches_decision_maker():
    """Literal eq. (4.1) of the opponent against a decision maker that plays at random."""
    room = friend_or_foe(3, 40)
    agent = component("inference", "q_learning", epsilon=0.2)
    room.attacker = component("attacker", "learner", agent=agent)
    state, _ = play(room, component("inference", "q_learning", epsilon=1.0), tensors=True)
    mine = Streams(0)
    mine_u = [uniform(mine.noise, 3, 1)[:, 0].tolist() for _ in range(40)]
    uniforms = [uniform(mine.attack, 3, 1)[:, 0].tolist() for _ in range(40)]
    for i in range(3):
        q = [0.0, 0.0]
        for t in range(40):
            a = invert([0.5, 0.5], mine_u[t][i])
            b = invert(greedy(q, 0.2), uniforms[t][i])
            r = -50.0 if a == b else 50.0
            q[b] = 0.9 * q[b] + 0.1 * (r + 0.8 * max(q))
        assert state.standing.adversary.mind.q[0].values[i, 0, :, 0].tolist() == pytest.approx(q)


def test_two_level_2_agents_reach_equilibrium():
    room = friend_or_foe(200, 400)
    agent = component("inference", "level_k", level=2)
    room.attacker = component("attacker", "learner", agent=agent)
    _, posterior = play(room, component("inference", "level_k", level=2))
    total = posterior.rewards[:, 200:].mean(1)
    assert abs(float(total.mean())) < 4 * float(total.std() / 200**0.5)
    assert torch.equal(posterior.opponent_rewards[0], -posterior.rewards)


def test_together_seats_each_member():
    members = [component("attacker", "exponential_smoother"), component("attacker", "fixed_policy")]
    both = component("attacker", "together", members=members)
    assert list(both.assign_seats(2)) == members
    with pytest.raises(ConfigMismatchError, match="2 players for the 1 seats"):
        game("friend_or_foe", both).opponents()
