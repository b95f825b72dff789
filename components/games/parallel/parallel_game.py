"""A parallel environment of PettingZoo as a game with numbered actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from components.contracts.user_code import reraise_user_error
from components.errors import ConfigMismatchError
from components.games.parallel.parallel_spaces import check_no_mask, check_spaces, order_players


class EpisodeStart(NamedTuple):
    """Start of an episode."""

    observed: list[float]  # [F]
    over: bool  # the episode is over before the first move


class MoveResult(NamedTuple):
    """Result of a move."""

    observed: list[float]  # [F]
    rewards: list[float]  # the decision maker's, then each opponent's
    terminated: bool  # terminal state for the decision maker
    truncated: bool  # stopped in a state that is not terminal
    present: list[bool]  # opponents that acted
    done: list[bool]  # terminal state for each opponent


class ParallelGame:
    """Live game of one ``ParallelEnv``: the decision maker is one of its players, and the others
    are opponents, in order.

    Action n of a player is the n-th of a ``Discrete`` space.  The observation is that of the
    decision maker, flattened.  A player that leaves without truncation is in a terminal state and
    gets no further rewards; the episode ends when the decision maker leaves.  Violations of
    PettingZoo's contract raise errors.

    Raises:
        ConfigMismatchError: it is not a parallel environment of two or more players with discrete
            actions and observations of a fixed size, or one of its methods fails or returns invalid
            values."""

    def __init__(self, made: Any, agent: str | int | None, where: str):
        from gymnasium.spaces.utils import flatdim
        from pettingzoo import ParallelEnv

        self.where = where
        if not isinstance(made, ParallelEnv):
            raise ConfigMismatchError(
                f"{where}: returns a {type(made).__name__}, not a ParallelEnv; return one "
                "(pettingzoo.utils.aec_to_parallel converts an AECEnv)"
            )
        self.env = made
        with self._calls("possible_agents, which must name all possible players"):
            possible_agents = made.possible_agents
        self.players = order_players(possible_agents, agent, where)
        with self._calls("action_space or observation_space"):
            spaces = [made.action_space(player) for player in self.players]
            views = [made.observation_space(player) for player in self.players]
            for player, space, view in zip(self.players, spaces, views, strict=True):
                check_spaces(player, space, view)
        self.first = [int(space.start) for space in spaces]
        self.sizes = [int(space.n) for space in spaces]
        self.space = views[0]
        self.width = flatdim(self.space)

    def _calls(self, what: str, method: str = "") -> AbstractContextManager[None]:
        """Re-raise errors in the user's code, and in its return values, in one line."""
        cls = type(self.env.unwrapped)  # class of the user, inside PettingZoo's wrappers
        return reraise_user_error(f"{self.where}: {what}", vars(cls).get(method, cls))

    def _observe(self, observations: Mapping[Any, Any]) -> list[float]:
        """Return the decision maker's observation, flattened."""
        from gymnasium.spaces import Discrete
        from gymnasium.spaces.utils import flatten

        observation = observations[self.players[0]]
        if isinstance(self.space, Discrete) and not self.space.contains(observation):
            raise ValueError(f"the observation {observation!r} is not in {self.space}")
        numbers = [float(x) for x in flatten(self.space, observation)]
        if len(numbers) != self.width or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"an observation of {self.players[0]!r} does not have {self.width} finite numbers"
            )
        return numbers

    def _check_infos(self, infos: Mapping[Any, Any]) -> None:
        for player, info in infos.items():
            check_no_mask((player, *(info or ())), f"the info of {player}")

    def begin(self, seed: int) -> EpisodeStart:
        """Reset the environment."""
        with self._calls(f"reset(seed={seed})", "reset"):
            observations, infos = self.env.reset(seed=seed)
            self._check_infos(infos)
            over = self.players[0] not in self.env.agents
            return EpisodeStart([0.0] * self.width if over else self._observe(observations), over)

    def move(self, actions: list[int]) -> MoveResult:
        """Take a step with the actions of all players by number."""
        numbers = {
            player: n + first
            for player, n, first in zip(self.players, actions, self.first, strict=True)
        }
        with self._calls("step", "step"):
            agents = list(self.env.agents)
            # in the order of the environment
            observations, rewards, ends, stops, infos = self.env.step(
                {player: numbers[player] for player in agents}
            )
            self._check_infos(infos)
            after = list(self.env.agents)
            gains = [_to_number(rewards[p]) if p in agents else 0.0 for p in self.players]
            stopped = [bool(stops.get(player, False)) for player in self.players]
            done = [
                player not in agents
                or bool(ends.get(player, False))
                or (player not in after and not stop)
                for player, stop in zip(self.players, stopped, strict=True)
            ]
            over = done[0] or stopped[0]
            for player, *flags in zip(self.players, done, stopped, strict=True):
                if not over and any(flags) and player in after:
                    raise ValueError(f"{player!r} is in agents after it left, or joined late")
            gone = done[0] and self.players[0] not in observations
            observed = [0.0] * self.width if gone else self._observe(observations)
        present = [player in agents for player in self.players[1:]]
        return MoveResult(observed, gains, done[0], stopped[0] and not done[0], present, done[1:])

    def close(self) -> None:
        """Close the environment."""
        with self._calls("close", "close"):
            self.env.close()


def _to_number(value: Any) -> float:
    """Convert a number, or an array of one, to a finite number.

    Raises ValueError otherwise."""
    number = float(np.asarray(value).item())
    if not math.isfinite(number):
        raise ValueError(f"a reward is not finite ({number})")
    return number
