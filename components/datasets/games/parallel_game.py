"""A parallel environment of PettingZoo as a game with numbers for actions, and what is asked of one."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from components.problems.live_environment import AfterMove
from components.trouble import Misfit

TRIED = 200  # moves at most of an episode that is played twice


@contextmanager
def asked(where: str, what: str) -> Iterator[None]:
    """An environment of a user is asked for something in here.

    Raises:
        Misfit: it raises anything; in one line, with the place in the user's file."""
    try:
        yield
    except Misfit:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(str(error).split())[:300]
        raise Misfit(
            f"{where}: {what} raised {type(error).__name__}: {said} (line {last.lineno} of {last.name})"
        ) from error


class ParallelGame:
    """``LiveGame`` of one ``ParallelEnv``: hers is one of its players, the others are opponents in their order there.

    Action n of a player is the n-th of a ``Discrete`` space.  What is observed is her own observation, flattened.  A player
    who has left gets nothing more; where she has, or nobody is left, the episode is over.

    Raises:
        Misfit: it is no parallel environment of two players or more with discrete actions and observations of a fixed size."""

    def __init__(self, made: Any, hers: str | None, where: str):
        from gymnasium.spaces import Dict, Discrete
        from pettingzoo import ParallelEnv

        self.where = where
        if not isinstance(made, ParallelEnv):
            raise Misfit(
                f"{where}: makes a {type(made).__name__}, no ParallelEnv (pettingzoo.utils.aec_to_parallel turns an AECEnv)"
            )
        self.env = made
        with asked(where, "possible_agents"):
            players = list(made.possible_agents)
        if len(players) < 2:
            raise Misfit(f"{where}: has {len(players)} player, a game takes two or more")
        names = [str(player) for player in players]
        if hers is not None and hers not in names:
            raise Misfit(f"dataset.agent={hers}: no player of {where.partition('=')[2]}, which has {', '.join(names)}")
        own = 0 if hers is None else names.index(hers)
        self.players = [players[own], *players[:own], *players[own + 1 :]]
        with asked(where, "action_space or observation_space"):
            spaces = [made.action_space(player) for player in self.players]
            self.space = made.observation_space(self.players[0])
        for player, space in zip(self.players, spaces, strict=True):
            if not isinstance(space, Discrete):
                raise Misfit(
                    f"{where}: actions of {player} are {type(space).__name__}; only Discrete ones can be played here"
                )
        if isinstance(self.space, Dict) and "action_mask" in self.space.spaces:
            raise Misfit(f"{where}: has an action_mask; every action must be allowed at every move")
        if not self.space.is_np_flattenable:
            raise Misfit(
                f"{where}: observations of {self.players[0]} are {type(self.space).__name__}, of no fixed size"
            )
        self.first = [int(space.start) for space in spaces]
        self.sizes = [int(space.n) for space in spaces]

    def _observed(self, observations: dict[Any, Any]) -> list[float]:
        from gymnasium.spaces.utils import flatten

        values = [float(x) for x in flatten(self.space, observations[self.players[0]])]
        if not all(math.isfinite(x) for x in values):
            raise Misfit(f"{self.where}: an observation is not finite")
        return values

    def begin(self, seed: int) -> list[float]:
        with asked(self.where, f"reset(seed={seed})"):
            observations, _ = self.env.reset(seed=seed)
            return self._observed(observations)

    def move(self, actions: list[int]) -> AfterMove:
        with asked(self.where, "step"):
            numbers = {player: n + first for player, n, first in zip(self.players, actions, self.first, strict=True)}
            acting = [player in self.env.agents for player in self.players]
            given = {player: numbers[player] for player in self.env.agents}  # in its own order
            observations, rewards, terminated, truncated, _ = self.env.step(given)
            gains = [float(rewards[p]) if acts else 0.0 for p, acts in zip(self.players, acting, strict=True)]
            if not all(math.isfinite(r) for r in gains):
                raise Misfit(f"{self.where}: a reward is not finite")
            ends, stops = bool(terminated[self.players[0]]), bool(truncated[self.players[0]])
            stops = stops or not (ends or self.env.agents)
            return AfterMove(self._observed(observations), gains, ends, stops)

    def close(self) -> None:
        with asked(self.where, "close"):
            self.env.close()


def check_seeded(open_one: Callable[[], ParallelGame], horizon: int, generator: torch.Generator) -> None:
    """Plays two, one of which has an episode behind it, side by side from the same seeds with the same actions drawn at random.

    Raises:
        Misfit: they differ: something is drawn from elsewhere than the seed, or stays from the episode before."""
    one, other = open_one(), open_one()
    moves = min(horizon, TRIED)

    def drawn(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    one.begin(drawn(2**31 - 1))
    for _ in range(moves):
        moved = one.move([drawn(n) for n in one.sizes])
        if moved.terminated or moved.truncated:
            break
    for seed in (drawn(2**31 - 1), drawn(2**31 - 1)):
        differ = one.begin(seed) != other.begin(seed)
        for move in range(moves):
            if differ:
                raise Misfit(
                    f"{one.where}: differs after {move} moves when it is played twice from reset(seed={seed}); let all that it "
                    "draws come from that seed, and nothing stay from the episode before"
                )
            actions = [drawn(n) for n in one.sizes]
            moved, same = one.move(actions), other.move(actions)
            differ = moved != same
            if not differ and (moved.terminated or moved.truncated):
                break
        if differ:
            raise Misfit(f"{one.where}: differs at its last move when it is played twice from reset(seed={seed})")
    one.close()
    other.close()
