"""Masks of actions in whatever form an environment tells them, and agents in no order or out of
turn."""

import numpy as np
import pytest
from parallel_envs import Plain
from support.runs.configured import load

from components.errors import ConfigMismatchError
from components.games.parallel.parallel_values import find_info_mask

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
    "inside": lambda env: {agent: {"extra": {"avail_actions": [1, 0]}} for agent in env.agents},
    "of all players": lambda env: {"action_masks": {agent: [1, 0] for agent in env.agents}},
    "beside the players": lambda env: {"__common__": {"invalid_actions": [1]}},
    "written otherwise": lambda env: {agent: {"ActionMask": [1, 0]} for agent in env.agents},
    "merely a mask": lambda env: {agent: {"mask": np.array([True, False])} for agent in env.agents},
}


class Telling(Plain):
    """Tells something beside its observations."""

    def __init__(self, infos):
        super().__init__(limit=3)
        self.infos = infos

    def reset(self, seed=None, options=None):
        seen, _ = super().reset(seed)
        return seen, self.infos(self)

    def step(self, actions):
        *returned, _ = super().step(actions)
        return *returned, self.infos(self)


@pytest.mark.parametrize("form", MASKED)
def test_a_mask_beside_observations_is_refused_in_every_form(form, monkeypatch):
    monkeypatch.setattr("parallel_envs.Telling", lambda: Telling(MASKED[form]), raising=False)
    with pytest.raises(
        ConfigMismatchError,
        match=r"has \w+ in the infos?.*; every action must be allowed .*drop the mask",
    ):
        load("pettingzoo", replicates=1, env="parallel_envs:Telling")


@pytest.mark.parametrize(
    "info",
    [
        {},
        None,
        {"mask": np.ones((8, 8))},
        {"death_mask": [1]},
        {"mask": [0.5, 2.0]},
        {"actions": [1, 0], "moves": 3},
    ],
)
def test_what_is_no_mask_of_actions_is_taken_for_none(info):
    assert find_info_mask(info, actions=2) is None


class Rejoins(Plain):
    """b plays from the second move on."""

    def reset(self, seed=None, options=None):
        returned = super().reset(seed)
        self.agents = ["a"]
        return returned

    def step(self, actions):
        self.made, self.agents = self.made + 1, list(self.possible_agents)
        nothing = dict.fromkeys(self.agents, False)
        return dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 1.0), nothing, nothing, {}


class Unordered(Plain):
    def __init__(self):
        super().__init__()
        self.possible_agents = {"a", "b"}


class Blind(Plain):
    def observation_space(self, agent):
        from gymnasium.spaces import Box

        return Box(0, 1, (0,))


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            Rejoins,
            "'b' is in agents after a step that it was not in before; players cannot join later, or come back",
        ),
        (
            Unordered,
            "possible_agents is a set, whose order differs from process to process; make it a list",
        ),
        (Blind, "observations of a hold no number"),
    ],
)
def test_agents_without_an_order_out_of_turn_or_blind_are_refused(env, said, monkeypatch):
    monkeypatch.setattr("parallel_envs.Bad", env, raising=False)
    with pytest.raises(ConfigMismatchError, match=said):
        load("pettingzoo", replicates=1, env="parallel_envs:Bad")
