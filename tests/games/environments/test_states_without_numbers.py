"""Games with states without numbers, and approximators of the user."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from support.runs.configured import F64, component, double
from support.small.small_games import METHODS, play

from components.contracts.capabilities import QFunction
from components.contracts.games import Environment, NumberedStates, Outcome, Shown
from components.errors import ConfigMismatchError
from components.games.environments.game import Game
from runner.execution.rng import Streams


@dataclass(frozen=True)
class Line:
    """States without numbers: a position on the line, moved by agent and opponent; s [R, 1]. States
    beyond ±3 are terminal."""

    n_actions: int = 2
    n_threats: tuple[int, ...] = (2,)
    horizon: int = 6
    continuing: bool = False
    dtype: torch.dtype = F64

    @property
    def device(self):
        return torch.device("cpu")

    def reset(self, replicates, generator):
        return torch.randn(replicates, 1, generator=generator, dtype=self.dtype)

    def step(self, s, a, b, generator):
        s_next = s + (2.0 * a - 1).unsqueeze(1) + 0.5 * (2.0 * b - 1)
        reward = -s_next[:, 0].abs()
        return Outcome(reward, -reward.unsqueeze(1), s_next, s_next[:, 0].abs() > 3)

    def observe(self, s, a):
        return Shown(torch.nn.functional.one_hot(a, 2).to(self.dtype), None)

    def features(self, s):
        return torch.cat([torch.ones_like(s), s, s.abs()], 1)


class Linear:
    """Minimal ``QFunction``: Q(s, a, b) = w_ab · φ(s), by stochastic gradients; not a module."""

    def __init__(self, environment, replicates, own, other):
        self.environment = environment
        self.replicates = replicates
        self.other = other
        self.w = torch.zeros(replicates, 3, own * other, dtype=F64)

    def fresh(self, own, other):
        return Linear(self.environment, self.replicates, own, other)

    def q(self, s):
        return (
            (self.environment.features(s).unsqueeze(1) @ self.w)
            .squeeze(1)
            .unflatten(1, (-1, self.other))
        )

    def learn(self, s, a, b, target, rate):
        rows = torch.arange(self.replicates)
        column = a * self.other + b
        error = rate * (target - self.q(s).flatten(1)[rows, column])
        self.w[rows, :, column] += error.unsqueeze(1) * self.environment.features(s)

    def state_dict(self):
        return {"w": self.w}

    def load_state_dict(self, state_dict):
        self.w = state_dict["w"]


def line(replicates=30, episodes=5):
    attacker = component("attacker", "exponential_smoother")
    return Game("line", Line(), episodes, 0.5, 10, replicates=replicates, attacker=attacker)


@pytest.mark.parametrize(("name", "keys"), METHODS)
def test_unnumbered_states_work_with_own_approximator(name, keys):
    game = line(episodes=60)
    assert isinstance(game.environment, Environment)
    assert not isinstance(game.environment, NumberedStates)
    model = Linear(game.environment, 30, 1, 1)
    assert isinstance(model, QFunction)
    inference = component("inference", name, alpha=0.02, **keys)
    _, posterior = play(game, inference, model=model)
    assert torch.isfinite(posterior.rewards).all()
    earned = posterior.rewards[:, -20:].mean()
    aimless = component("inference", name, alpha=0.02, epsilon=1.0, **keys)
    assert earned > play(line(episodes=60), aimless, model=model)[1].rewards.mean() + 1
    values = posterior.values_at(double([[2.0]]).expand(30, 1))
    assert (values[:, 0] > values[:, 1]).double().mean() > 0.8  # back towards the middle
    assert game.describe()["states"] == "not numbered"


def test_table_requires_numbered_states():
    with pytest.raises(
        ConfigMismatchError, match="model=q_table: a table requires numbered states"
    ):
        component("model", "q_table").build(line(), Streams(0))
