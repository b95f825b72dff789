"""Games with opponents of the user, a schedule of exploration, and random streams."""

from __future__ import annotations

import pytest
import torch
from support.runs.configured import component, uniform
from support.small.small_games import (
    METHODS,
    Stationary,
    friend_or_foe,
    have_equal_states,
    play,
    play_and_resume,
    play_episodes,
    three_states,
)
from torch import Tensor

from components.contracts.opponents import Opponent
from runner.execution.rng import Streams


class Follower(Opponent[Tensor]):
    """Opponent with only the required methods: it counts the agent's actions in each state, and
    responds to the most frequent one."""

    name: str = "follower"

    def reset(self, seat, rng):
        return torch.ones(seat.replicates, seat.n_states, seat.agent_actions, dtype=seat.dtype)

    def act(self, state, turn, rng):
        return state[torch.arange(len(turn.s)), turn.s].argmax(-1)

    def observe(self, state, move):
        state = state.clone()
        state[torch.arange(len(move.s)), move.s, move.a] += 1
        return state


@pytest.mark.parametrize(("name", "keys"), METHODS)
def test_learning_user_opponent_resumes(name, keys):
    def open_game():
        game = friend_or_foe(4, 30)
        game.attacker = Follower()
        inference = component("inference", name, **keys)
        rng = Streams(0)
        model = component("model", "q_table").build(game, rng)
        return inference, game, rng, inference.init(model, game, rng)

    whole, repeat = play_and_resume(open_game, 15)
    assert whole.standing.adversary.sum() == 4 * (2 + 30)
    assert have_equal_states(whole, repeat)


def test_exploration_decays_by_episode():
    """With ε = 1 in the first episodes and 0 afterwards, all choices are random and then greedy."""
    decay = {"start": 1.0, "factor": 1e-9, "every": 20}
    game = friend_or_foe(2000, 40)
    game.attacker = Stationary(p=[1.0, 0.0])
    _, posterior = play(game, component("inference", "q_learning", epsilon=decay, alpha=0.5))
    random = posterior.rewards[:, :20]
    sure = posterior.rewards[:, 25:]
    assert abs(float(random.mean())) < 4 * 50 / (2000 * 20) ** 0.5
    assert (sure == 50).all()


def test_agent_draws_one_uniform_per_move():
    """Independent of the opponents' draws; literal games in tests rely on it."""
    game = three_states(2, 6)
    rng = Streams(0)
    inference = component("inference", "q_learning")
    state = inference.init(component("model", "q_table").build(game, rng), game, rng)
    play_episodes(inference, game, rng, state, 0, 6)
    after = uniform(rng.noise, 1)
    fresh = uniform(Streams(0).noise, 13)
    assert torch.equal(after, fresh[12:])
