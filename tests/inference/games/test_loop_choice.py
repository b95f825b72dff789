"""Games with and without the compiled loop, and the random numbers of the loop."""

import numpy as np
import pytest
from compiled_games import game, player
from support.runs.configured import component
from support.small.small_games import game_of, play

from components.errors import NumericalError
from components.games.agents.level_k import LevelK
from components.games.agents.player import PlayerState
from components.games.beliefs.bloom_counts import BloomCounts
from components.games.fast import streams, thinkers
from runner.execution.rng import Streams


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_random_numbers_are_uniform_and_independent():
    seed = np.array([2**63 + 12345], np.uint64)
    stream = np.zeros(1, np.uint64)
    u = np.empty((200, 200))
    for i in range(200):
        streams.init_stream(seed, i, stream)
        u[i] = [streams.draw_uniform(stream) for _ in range(200)]
    counts = np.histogram(u, 50, (0, 1))[0]
    assert ((counts - 800) ** 2 / 800).sum() < 49 + 4 * 98**0.5  # χ² with 49 degrees of freedom
    z = (u - 0.5) * 12**0.5
    for lag in (z[:, 1:] * z[:, :-1], z[1:] * z[:-1], z[1:, 1:] * z[:-1, :-1]):
        assert abs(lag.mean()) < 4 / lag.size**0.5


def test_equal_estimates_are_drawn_uniformly():
    p = np.array([0.5, 0.2, 0.2, 0.7, 0.2])
    u = np.linspace(0, 1, 300, endpoint=False)
    policies = np.zeros((2, 5))
    for ties, policy in enumerate(policies):
        thinkers.set_greedy(-p, 5, 0.0, ties, 1 / np.maximum(np.arange(6), 1), policy)
    counts = np.bincount([streams.draw_index(policies[0], 5, x) for x in u], minlength=5)
    assert counts.tolist() == [0, 100, 100, 0, 100]
    assert policies[1].tolist() == [0, 1, 0, 0, 0]


class OwnLevelK(LevelK):
    """Subclass, which may have different rules."""


BLOOM = BloomCounts(name="bloom", hashes=2, cells=11, bits=8)
SMOOTHER = component("attacker", "exponential_smoother")


def learner(name, **keys):
    return component("attacker", "learner", agent=component("inference", name, **keys))


@pytest.mark.parametrize(
    ("inference", "attacker", "model"),
    [
        (component("inference", "fpq_learning", belief=BLOOM), SMOOTHER, "q_table"),
        (component("inference", "model_averaging", forecast="sampled"), SMOOTHER, "q_table"),
        (component("inference", "model_averaging", counted="right"), SMOOTHER, "q_table"),
        (OwnLevelK(**dict(player("level 2"))), SMOOTHER, "q_table"),
        (player("level 2"), SMOOTHER, "q_network"),
        (player("level 2"), component("attacker", "oracle"), "q_table"),
        (player("level 2"), learner("model_averaging", counted="right"), "q_table"),
        (player("level 2"), learner("fpq_learning", belief=BLOOM), "q_table"),
    ],
)
def test_games_without_loop_use_tensors(inference, attacker, model):
    problem = game("friend_or_foe", "smoother", 3, 3)
    problem.attacker = attacker
    rng = Streams(0)
    state = inference.init(component("model", model).build(problem, rng), problem, rng)
    assert type(state) is PlayerState


def test_several_opponents_use_tensors():
    problem = game_of("blotto", 3, SMOOTHER)
    table = component("model", "q_table").build(problem, Streams(0))
    assert type(player("q").init(table, problem, Streams(0))) is PlayerState


@pytest.mark.parametrize("diverges", ["inference", "attacker.agent"])
def test_diverging_values_in_loop_are_reported(diverges):
    """Four features with a rate of 1 each make steps four times too large."""
    rates = {"inference": 1e-3, "attacker.agent": 1e-3} | {diverges: 1.0}
    opponent = learner("q_learning", alpha=rates["attacker.agent"])
    problem = game_of("coin_game", 2, opponent, episodes=6000, size=3)
    agent = component("inference", "q_learning", alpha=rates["inference"])
    with pytest.raises(NumericalError, match=f"{diverges}: the policy is not finite"):
        play(problem, agent, model="q_linear")
