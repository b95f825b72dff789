"""Games with several opponents: products of forecasts, and one model per opponent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, generator, normal, uniform
from support.small.literal_games import greedy, invert
from support.small.small_games import METHODS, Stationary, assert_near, friend_or_foe, play
from torch import Tensor

from components.contracts.opponents import Opponent
from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from runner.execution.rng import Streams


def against_two(replicates, episodes, attacker):
    """Two states, two actions of the agent, three and two of the opponents; each opponent has its
    own reward."""
    g = generator(5)
    shape = (2, 2, 6)
    environment = TableEnvironment(
        reward_a=normal(g, shape),
        reward_b=normal(g, *shape, 2),
        transition=torch.randint(0, 2, shape, generator=g),
        n_threats=(3, 2),
        touches=torch.zeros(2, 2, 1, dtype=F64),
    )
    return Game(
        "against-two", environment, episodes, 0.2, 10, replicates=replicates, attacker=attacker
    )


class Several(Opponent[Tensor]):
    """Opponent with given probabilities."""

    name: str = "several"
    players: list[list[float]]

    def assign_seats(self, seats):
        return [Stationary(p=p) for p in self.players]


PAIR = Several(players=[[0.5, 0.2, 0.3], [0.3, 0.7]])


def test_fictitious_play_multiplies_forecasts():
    """Literal version of sections 4.3.1 and 4.3.5."""
    game = against_two(3, 40, PAIR)
    state, posterior = play(game, component("inference", "fpq_learning", forget=0.9))
    rng = Streams(0)
    uniforms = [uniform(rng.noise, 3, 1)[:, 0].tolist() for _ in range(40)]
    threats = [
        [player.act(torch.zeros(3), None, rng).tolist() for player in PAIR.assign_seats(2)]
        for _ in range(40)
    ]
    table = game.environment
    for i in range(3):
        q = np.zeros((2, 2, 3, 2))  # Q(s, a, b¹, b²)
        counts = [np.ones((2, 3)), np.ones((2, 2))]

        def psi(s, q=q, counts=counts):
            p, r = (n[s] / n[s].sum() for n in counts)
            return np.einsum("axy,x,y->a", q[s], p, r)

        s = 0
        for t in range(40):
            a = invert(greedy(psi(s), 0.1), uniforms[t][i])
            x, y = (actions[i] for actions in threats[t])
            cell = s, a, 2 * x + y
            r = float(table.reward_a[cell])
            s_next = int(table.transition[cell])
            for n, b in zip(counts, (x, y), strict=True):
                n[s] *= 0.9
                n[s, b] += 1
            q[s, a, x, y] = 0.9 * q[s, a, x, y] + 0.1 * (r + 0.8 * max(psi(s_next)))
            s = s_next
        assert_near(state.mind.q[0].values[i], q.reshape(2, 2, 6))
        assert_near(state.mind.counts[i], np.hstack(counts))
    assert_near(posterior.forecast.sum(1), np.ones(3))


@pytest.mark.parametrize("level", [2, 3])
def test_each_opponent_is_modelled_separately(level):
    game = against_two(2, 30, PAIR)
    state, posterior = play(game, component("inference", "level_k", level=level))
    shapes = [tuple(q.values.shape[2:]) for q in state.mind.q]
    expected = {2: [(3, 2), (2, 2)], 3: [(2, 3), (3, 2), (2, 2), (2, 2)]}[level]
    assert shapes == [*expected, (2, 6)]
    assert state.mind.counts.shape[-1] == {2: 4, 3: 5}[level]
    assert posterior.forecast.shape == (2, 6)
    assert all(bool((q.values != 0).any()) for q in state.mind.q)


@pytest.mark.parametrize(("name", "keys"), METHODS)
def test_opponent_with_one_action_changes_nothing(name, keys):
    alone = friend_or_foe(3, 40)
    table = alone.environment
    beside = friend_or_foe(3, 40)
    beside.environment = replace(
        table, reward_b=table.reward_b.expand(-1, -1, -1, 2), n_threats=(2, 1)
    )
    members = [alone.attacker, component("attacker", "fixed_policy", plays="cooperate")]
    beside.attacker = component("attacker", "together", members=members)
    agent = component("inference", name, **keys)
    first, other = (play(game, agent, tensors=True)[1] for game in (alone, beside))
    assert torch.equal(first.rewards, other.rewards)
    assert torch.equal(first.values, other.values)
