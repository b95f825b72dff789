"""Games as parallel environments of PettingZoo, for learners outside the runner.

    from runner.python.games import parallel_env

    env = parallel_env("coin_game", size=3)
    observations, _ = env.reset(seed=0)

This module requires PettingZoo (pip install pettingzoo gymnasium)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from components import registry
from components.contracts.games import ChangingEnvironment
from components.contracts.roles import Setting
from components.games.environments.game import Game
from runner.compose.check import build_component
from runner.compose.expand import component_defaults, expand_component
from runner.disk import conf_folders
from runner.errors import ConfigError, nearest
from runner.execution.rng import Streams

AGENT_NAME = "decision_maker"
Observations = dict[str, np.ndarray]


class GameAsParallelEnv(ParallelEnv[str, np.ndarray, int]):
    """One game of a dataset (R = 1) for players ``decision_maker``, ``opponent_1``, ….

    All players observe the features of the state.  An episode is truncated at the horizon; if
    each episode of the game continues the previous one (rounds of a matrix game), all
    ``episodes`` are merged into one, truncated after the last.  Third parties do not play, so
    the tax is zero.  ``reset`` without a seed continues the random numbers; the first call
    without a seed uses an arbitrary seed.

    Example:
        >>> from runner.python.games import parallel_env
        >>> env = parallel_env("coin_game", size=3)
        >>> env.agents, env.moves  # before the first episode; moves per episode
        ([], 12)
    """

    def __init__(self, game: Game) -> None:
        world = game.environment
        self.metadata = {"name": game.name, "render_modes": []}
        self.possible_agents = [
            AGENT_NAME,
            *(f"opponent_{m}" for m in range(1, len(world.n_threats) + 1)),
        ]
        self.agents: list[str] = []
        # number of moves per episode
        self.moves = world.horizon * (game.episodes if world.continuing else 1)
        self._world = world
        self._generator = torch.Generator()
        self._seeded = False
        self._made = 0
        self._s = world.reset(1, torch.Generator())
        width = world.features(self._s).shape[1]
        sizes = zip(self.possible_agents, (world.n_actions, *world.n_threats), strict=True)
        self._acts: dict[str, Discrete] = {agent: Discrete(n) for agent, n in sizes}
        self._sees = {
            agent: Box(-np.inf, np.inf, (width,), np.float64) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> Box:
        """Space of a player's observations, features of the state [F].

        Args:
            agent: name of the player.

        Example:
            >>> env.observation_space("opponent_1") == env.observation_space("decision_maker")
            True
        """
        return self._sees[agent]

    def action_space(self, agent: str) -> Discrete:
        """Space of a player's actions, numbers from 0.

        Args:
            agent: name of the player.

        Example:
            >>> int(env.action_space("opponent_1").n)
            4
        """
        return self._acts[agent]

    def _observe(self) -> Observations:
        features = self._world.features(self._s)[0].double().numpy()
        return {agent: features.copy() for agent in self.agents}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: seed of the random numbers; None continues them.
            options: ignored, because there are no options.

        Returns:
            Features of the state [F] and an empty dict, for each player.

        Example:
            >>> observations, _ = env.reset(seed=0)
            >>> observations["opponent_1"].shape == env.observation_space("opponent_1").shape
            True
        """
        if seed is not None:
            self._generator.manual_seed(seed)
        elif not self._seeded:
            self._generator.seed()
        self._seeded = True
        self._made, self.agents = 0, list(self.possible_agents)
        self._s = self._world.reset(1, self._generator)
        return self._observe(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Make one move of all players.

        Args:
            actions: action of each player, by name.

        Returns:
            For each player: features of the next state [F], reward, termination, truncation at the
            horizon, and an empty dict.

        Raises:
            ValueError: no episode is running, or an action is missing or not in its space.

        Example:
            >>> observations, _ = env.reset(seed=0)
            >>> _, rewards, ended, _, _ = env.step({"decision_maker": 0, "opponent_1": 1})
            >>> sorted(rewards), ended["decision_maker"]
            (['decision_maker', 'opponent_1'], False)
        """
        if not self.agents:
            raise ValueError("no episode is running: call reset()")
        for agent in self.agents:
            if not self._acts[agent].contains(actions.get(agent)):
                raise ValueError(
                    f"{agent}: {actions.get(agent)!r} is not an action in {self._acts[agent]}"
                )
        a, *b = (int(actions[agent]) for agent in self.agents)
        rules = self._world
        if isinstance(rules, ChangingEnvironment):
            rules = rules.at(self._made // rules.horizon if rules.continuing else 0)
        outcome = rules.step(self._s, torch.tensor([a]), torch.tensor([b]), self._generator)
        self._s = outcome.s_next
        self._made += 1
        over = outcome.done is not None and bool(outcome.done)
        cut = not over and self._made >= self.moves
        agents = self.agents
        gains = [float(outcome.r_a), *map(float, outcome.r_b[0])]
        observations = self._observe()
        if over or cut:
            self.agents = []
        return (
            observations,
            dict(zip(agents, gains, strict=True)),
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, cut),
            {agent: {} for agent in agents},
        )


def parallel_env(game: str, **keys: Any) -> GameAsParallelEnv:
    """Parallel environment of a dataset's game.

    Args:
        game: name of a dataset with a game.
        **keys: keys of the dataset; others have the defaults of its YAML.

    Returns:
        The environment, before its first ``reset``.

    Raises:
        ConfigError: the game does not exist, or a key is invalid.

    Example:
        >>> from runner.python.games import parallel_env
        >>> env = parallel_env("coin_game", size=3)
        >>> env.possible_agents
        ['decision_maker', 'opponent_1']
    """
    games = [
        name for name in registry.names("dataset") if registry.get("dataset", name).kind == "game"
    ]
    if game not in games or conf_folders.find("dataset", game) is None:
        raise ConfigError(f"{game}: no such game{nearest(game, games)}")
    defaults = component_defaults("dataset", game)
    dataset: Any = build_component(
        "dataset", expand_component("dataset", defaults | keys, "dataset"), "dataset"
    )
    return GameAsParallelEnv(
        dataset.load(
            Streams(0), Setting(Path(), torch.device("cpu"), torch.float64, 1, offline=True)
        )
    )
