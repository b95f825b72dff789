"""Masks of actions in all forms, and unordered or rejoining agents."""

import numpy as np
import pytest
from parallel_envs import Plain
from support.runs.configured import load

from components.errors import ConfigMismatchError

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")

MASKED = {
    "at reset": lambda env: {
        agent: {"action_mask": [1, 0]} if env.made == 0 else {} for agent in env.agents
    },
    "at the last step": lambda env: {
        agent: {"action_mask": [1, 0]} if env.made == 2 else {} for agent in env.agents
    },
    "of one opponent": lambda env: {"b": {"legal_moves": [0]}},
    "all allowed": lambda env: {
        agent: {"action_mask": np.ones(2, np.int8)} for agent in env.agents
    },
    "of all players": lambda env: {"action_masks": {agent: [1, 0] for agent in env.agents}},
    "beside the players": lambda env: {"__common__": {"invalid_actions": [1]}},
    "written otherwise": lambda env: {agent: {"ActionMask": [1, 0]} for agent in env.agents},
}


class Telling(Plain):
    """Environment with additional infos."""

    def __init__(self, infos):
        super().__init__(limit=3)
        self.infos = infos

    def reset(self, seed=None, options=None):
        observation, _ = super().reset(seed)
        return observation, self.infos(self)

    def step(self, actions):
        *returned, _ = super().step(actions)
        return *returned, self.infos(self)


@pytest.mark.parametrize("form", MASKED)
def test_mask_of_actions_is_refused_in_every_form(form, monkeypatch):
    monkeypatch.setattr("parallel_envs.Telling", lambda: Telling(MASKED[form]), raising=False)
    with pytest.raises(
        ConfigMismatchError,
        match=r"the info of \w+ has \w+; .*remove the mask",
    ):
        load("pettingzoo", replicates=1, env="parallel_envs:Telling")


@pytest.mark.parametrize("info", [{}, None, {"death_mask": [1]}, {"actions": [1, 0], "moves": 3}])
def test_infos_without_action_masks_are_played(info, monkeypatch):
    def infos(env):
        return dict.fromkeys(env.agents, info)

    monkeypatch.setattr("parallel_envs.Telling", lambda: Telling(infos), raising=False)
    load("pettingzoo", replicates=1, env="parallel_envs:Telling")


class Rejoins(Plain):
    """b plays from the second move on."""

    def reset(self, seed=None, options=None):
        returned = super().reset(seed)
        self.agents = ["a"]
        return returned

    def step(self, actions):
        self.made += 1
        self.agents = list(self.possible_agents)
        nothing = dict.fromkeys(self.agents, False)
        return dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 1.0), nothing, nothing, {}


class Unordered(Plain):
    def __init__(self):
        super().__init__()
        self.possible_agents = {"a", "b"}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            Rejoins,
            "'b' is in agents after it left, or joined late",
        ),
        (
            Unordered,
            "possible_agents is a set, with a different order in each process; use a list",
        ),
    ],
)
def test_unordered_or_rejoining_agents_are_refused(env, message, monkeypatch):
    monkeypatch.setattr("parallel_envs.Bad", env, raising=False)
    with pytest.raises(ConfigMismatchError, match=message):
        load("pettingzoo", replicates=1, env="parallel_envs:Bad")
