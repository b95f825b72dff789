"""Parallel environments of PettingZoo as users may write them, correct and faulty."""

import random

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Sequence
from pettingzoo import ParallelEnv


class Weather(ParallelEnv):
    """Two or more agents guess the weather (1 … 3), which the last agent observes; agents that guess
    wrong pay agents that guess right."""

    def __init__(
        self, players=2, moves=5, source="seed", stops=None, acts=None, sees=None, odd=None
    ):
        self.metadata = {"name": "weather"}
        self.possible_agents = [f"p{i}" for i in range(players)]
        self.moves = moves
        self.source = source
        self.stops = stops
        self.odd = odd
        self.remembered = 0
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
        observation = np.array([self.sky, self.made], np.float32)
        if self.odd == "nan":
            observation[0] = np.nan
        return dict.fromkeys(self.possible_agents, observation)

    def reset(self, seed=None, options=None):
        if self.odd == "breaks":
            raise RuntimeError("no weather\ntoday")
        if self.source == "global":
            random.seed(seed)
        self.rng = np.random.default_rng(None if self.source == "unseeded" else seed)
        self.agents = list(self.possible_agents)
        self.made = 0
        return self._look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        assert all(1 <= n <= 3 for n in actions.values())
        self.made = self.made + 1
        self.remembered = self.remembered + 1
        gains = {
            agent: (1.5 if n == self.sky else -1.0) * (1 + i)
            for i, (agent, n) in enumerate(actions.items())
        }
        if self.odd == "forgets":
            gains.pop("p1")
        agents = self.agents
        ended = self.stops == "ends" and self.sky == 3
        cut = self.made >= self.moves
        observed = self._look()
        self.agents = [] if ended or cut else agents
        flags = dict.fromkeys(agents, ended), dict.fromkeys(agents, cut)
        return observed, gains, *flags, {agent: {} for agent in agents}


class Plain(ParallelEnv):
    """Two or more players with one observation and two actions; a subclass defines rewards and
    ends."""

    metadata = {"name": "plain"}
    places = 1

    def __init__(self, limit=None, players=("a", "b")):
        # moves after which the environment truncates
        self.possible_agents = list(players)
        self.limit = limit
        self.place = Discrete(self.places)
        self.choice = Discrete(2)

    def observation_space(self, agent):
        return self.place

    def action_space(self, agent):
        return self.choice

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.at = 0
        self.made = 0
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def pay(self, actions):
        return dict.fromkeys(self.agents, 1.0)

    def ends(self):
        return dict.fromkeys(self.agents, False)

    def step(self, actions):
        agents = self.agents
        pay = self.pay(actions)
        self.made = self.made + 1
        ends = self.ends()
        cut = self.made == self.limit
        self.agents = [] if cut else [agent for agent in agents if not ends[agent]]
        observations = dict.fromkeys(agents, self.at)
        cuts = dict.fromkeys(agents, cut)
        return observations, pay, ends, cuts, {agent: {} for agent in agents}


class Fork(Plain):
    """Staying pays 1; leaving pays 0, then 2 per move: at γ = 0.8 Q(go) = 8 and Q(stay) = 7.4."""

    places = 2

    def pay(self, actions):
        pay = 2.0 if self.at else 1.0 - actions["a"]
        self.at = max(self.at, actions["a"])
        return {"a": pay, "b": 0.0}


class OpponentLeaves(Plain):
    """b is paid 2 and leaves after the first move; a is paid 1 per move, until ``limit``."""

    leaver = "b"

    def pay(self, actions):
        return {agent: 2.0 if agent == self.leaver else 1.0 for agent in self.agents}

    def ends(self):
        return {agent: agent == self.leaver for agent in self.agents}


class AgentLeaves(OpponentLeaves):
    """a is paid 2 and leaves after the first move, which is not terminal for b."""

    leaver = "a"


class Loud(Plain):
    """Observes 50 numbers up to 255."""

    def __init__(self, limit):
        super().__init__(limit)
        self.place = Box(0, 255, (50,))

    def reset(self, seed=None, options=None):
        _, infos = super().reset(seed)
        return dict.fromkeys(infos, np.full(50, 255.0)), infos

    def step(self, actions):
        observations, *rest = super().step(actions)
        return dict.fromkeys(observations, np.full(50, 255.0)), *rest


class Short(Plain):
    """Half of the episodes are over before the first move; the others have one, which pays 1."""

    def reset(self, seed=None, options=None):
        returned = super().reset(seed)
        if np.random.default_rng(seed).random() < 0.5:
            self.agents = []
        return returned

    def ends(self):
        return dict.fromkeys(self.agents, True)


class Odd(Plain):
    """Environment that ends after three moves and is wrong, or merely unusual, in one way."""

    wrong_pays = {"rewards are two": np.ones(2), "reward is None": None, "reward is nan": np.nan}

    def __init__(self, odd, players=("a", "b")):
        super().__init__(players=players)
        self.odd = odd

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed)
        if self.odd == "mask in info":
            infos["b"] = {"action_mask": np.ones(2, np.int8)}
        changed = {
            "reset returns observations": observations,
            "infos are a list": (observations, []),
            "no observation at reset": ({}, infos),
            "observation outside": (dict.fromkeys(observations, -1), infos),
            "observation None": (dict.fromkeys(observations), infos),
        }
        if self.odd == "a stranger":
            self.agents = [*self.agents, "z"]
        return changed.get(self.odd, (observations, infos))

    def ends(self):
        return dict.fromkeys(self.agents, self.made == 3)

    def step(self, actions):
        observations, pay, ends, cuts, infos = super().step(actions)
        last = self.made == 3
        first = self.possible_agents[0]
        if self.odd == "reward is an array":
            pay = {agent: np.array([gain], np.float32) for agent, gain in pay.items()}
        if self.odd in self.wrong_pays:
            pay[first] = self.wrong_pays[self.odd]
        if self.odd == "flags are numbers":
            ends = {agent: np.array([end]) for agent, end in ends.items()}
        if self.odd == "left out at the end" and last:
            observations = ends = cuts = infos = {}
        if self.odd == "left out of the rewards" and last:
            pay = {}
        if self.odd == "leaves without a word":
            self.agents = [] if last else self.agents
            ends = dict.fromkeys(ends, False)
        if self.odd == "never leaves":
            self.agents = list(self.possible_agents)
        if self.odd == "opponent stays":
            ends["b"] = True
        if self.odd == "four values":
            return observations, pay, ends, infos
        if self.odd == "returns None":
            return None
        if self.odd == "ends the process":
            raise SystemExit(3)
        return observations, pay, ends, cuts, infos


def make_without_players():
    env = Plain()
    del env.possible_agents
    return env


def parallel_env(**keys):
    return Weather(**keys)


def make_continuous():
    return Weather(acts=Box(0, 1, (2,)))


def make_masked():
    return Weather(sees=Dict({"observation": Box(0, 1, (2,)), "action_mask": Box(0, 1, (3,))}))


def make_unsized():
    return Weather(sees=Sequence(Discrete(2)))


def nothing():
    return object()


number = 3
