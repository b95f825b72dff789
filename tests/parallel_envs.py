"""Parallel environments of PettingZoo as users may write them, good ones and bad ones."""

from __future__ import annotations

import random

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Sequence
from pettingzoo import ParallelEnv


class Weather(ParallelEnv):
    """Two or more guess the weather (1 … 3) that the last one sees coming; whoever is right is paid by who is not."""

    def __init__(self, players=2, moves=5, source="seed", stops=None, acts=None, sees=None, odd=None):
        self.metadata = {"name": "weather"}
        self.possible_agents = [f"p{i}" for i in range(players)]
        self.moves, self.source, self.stops, self.odd, self.remembered = moves, source, stops, odd, 0
        self._acts = acts or Discrete(3, start=1)
        self._sees = sees or Box(-1, 9, (2,), np.float32)

    def action_space(self, agent):
        return self._acts

    def observation_space(self, agent):
        return self._sees

    def _draw(self):
        if self.source == "global":
            return random.randint(1, 3)
        return int(self.rng.integers(1, 4)) + (self.remembered > 3 and self.source == "remembers")

    def _look(self):
        self.sky = self._draw()
        seen = np.array([self.sky, self.made], np.float32)
        if self.odd == "nan":
            seen[0] = np.nan
        return dict.fromkeys(self.possible_agents, seen)

    def reset(self, seed=None, options=None):
        if self.odd == "breaks":
            raise RuntimeError("no weather\ntoday")
        if self.source == "global":
            random.seed(seed)
        self.rng = np.random.default_rng(None if self.source == "unseeded" else seed)
        self.agents, self.made = list(self.possible_agents), 0
        return self._look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        assert all(1 <= n <= 3 for n in actions.values())
        self.made, self.remembered = self.made + 1, self.remembered + 1
        gains = {agent: (1.5 if n == self.sky else -1.0) * (1 + i) for i, (agent, n) in enumerate(actions.items())}
        if self.odd == "forgets":
            gains.pop("p1")
        there = self.agents
        ended = self.stops == "ends" and self.sky == 3
        cut = self.made >= self.moves
        observed = self._look()
        if ended or cut:
            self.agents = []
        return observed, gains, dict.fromkeys(there, ended), dict.fromkeys(there, cut), {a: {} for a in there}


def parallel_env(**keys):
    return Weather(**keys)


def continuous():
    return Weather(acts=Box(0, 1, (2,)))


def masked():
    return Weather(sees=Dict({"observation": Box(0, 1, (2,)), "action_mask": Box(0, 1, (3,))}))


def of_any_length():
    return Weather(sees=Sequence(Discrete(2)))


def nothing():
    return object()


number = 3
