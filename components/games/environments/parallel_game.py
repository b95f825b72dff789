"""A parallel environment of PettingZoo as a game with numbers for actions, and what is asked of
one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import torch

from components.contracts.user_code import format_code_location, reraise_user_error
from components.errors import ConfigMismatchError
from components.games.environments.parallel_values import (
    find_info_mask,
    find_observation_error,
    find_space_mask,
    parallel_conversion_hint,
    to_flag,
    to_number,
)

# joint actions, and observed numbers, of a game that fits in tables or weights
MOST = 1_000_000
TRIED = 200  # largest number of moves of an episode that is played twice
ACTION_MASK_HINT = (
    "every action must be allowed at every move; let a forbidden one do "
    "nothing, or cost something, and drop the mask"
)
RETURNS = ("observations", "rewards", "terminations", "truncations", "infos")


class EpisodeStart(NamedTuple):
    """Start of an episode."""

    observed: list[float]  # [F]
    over: bool  # the episode is over before the first move


class MoveResult(NamedTuple):
    """Result of a move."""

    observed: list[float]  # [F]
    rewards: list[float]  # the decision maker's, then each opponent's
    terminated: bool  # a true end for the decision maker
    truncated: bool  # the game stops here, though it could go on
    present: list[bool]  # each opponent was in the game and acted
    done: list[bool]  # a true end for each opponent


class ParallelGame:
    """A live game of one ``ParallelEnv``: the decision maker is one of its players, the others are
    opponents in their order.

    Action n of a player is the n-th of a ``Discrete`` space.  What is observed is the decision
    maker's own observation, flattened.  A player that has left gets nothing more; where the
    decision maker has, or nobody is left, the episode is over. One that is over when it begins has
    no moves.

    Raises:
        ConfigMismatchError: it is no parallel environment of two players or more with discrete
            actions and observations of a fixed size, or does not return what PettingZoo's parallel
            environments return."""

    def __init__(self, made: Any, agent: str | int | None, where: str):
        from gymnasium.spaces.utils import flatdim
        from pettingzoo import ParallelEnv

        self.where = where
        if not isinstance(made, ParallelEnv):
            raise ConfigMismatchError(
                f"{where}: makes a {type(made).__name__}, no ParallelEnv{parallel_conversion_hint(made)}"
            )
        self.env = made
        with reraise_user_error(f"{where}: unwrapped", type(made)):
            kind = type(made.unwrapped)  # the user's own class, below PettingZoo's wrappers
        self._code = {method: vars(kind).get(method, kind) for method in ("reset", "step", "close")}
        self.players = self._order_players(agent)
        with reraise_user_error(f"{where}: action_space or observation_space", type(made)):
            spaces = [made.action_space(player) for player in self.players]
            view_spaces = [made.observation_space(player) for player in self.players]
        for player, space, view in zip(self.players, spaces, view_spaces, strict=True):
            self._check_spaces(player, space, view)
        self.space = view_spaces[0]
        if not self.space.is_np_flattenable:
            raise ConfigMismatchError(
                f"{where}: observations of {self.players[0]} are {type(self.space).__name__}, of no fixed size"
            )
        self.width = flatdim(self.space)
        if not self.width:
            raise ConfigMismatchError(
                f"{where}: observations of {self.players[0]} hold no number; observe at least one, always 0 if need be"
            )
        joint = math.prod(int(space.n) for space in spaces)
        for count, quantity in (
            (joint, "joint actions"),
            (self.width, f"numbers in an observation of {self.players[0]}"),
        ):
            if count > MOST:
                raise ConfigMismatchError(
                    f"{where}: has {count:,} {quantity}, more than {MOST:,}; make fewer of them"
                )
        self.first = [int(space.start) for space in spaces]
        self.sizes = [int(space.n) for space in spaces]

    def _order_players(self, agent: str | int | None) -> list[Any]:
        """The decision maker, and then the others.

        Raises:
            ConfigMismatchError: the agent is not among them, there is one, or two have the same
                name.
        """
        kind = type(self.env)
        where = self.where
        with reraise_user_error(
            f"{where}: possible_agents, which must name all players that there can be", kind
        ):
            players = self._in_order("possible_agents", kind, self.env.possible_agents)
        names = [str(player) for player in players]
        if len(set(names)) < len(names):
            self._raise_incompatible(
                kind, f"possible_agents names a player twice: {', '.join(names)}"
            )
        if len(players) < 2:
            raise ConfigMismatchError(
                f"{where}: has {len(players)} player, a game takes two or more"
            )
        if agent is not None and str(agent) not in names:
            raise ConfigMismatchError(
                f"dataset.agent={agent}: no player of {where.partition('=')[2]}, which has {', '.join(names)}"
            )
        index = 0 if agent is None else names.index(str(agent))
        return [players[index], *players[:index], *players[index + 1 :]]

    def _check_spaces(self, player: Any, space: object, view: object) -> None:
        from gymnasium.spaces import Discrete, Space

        if not isinstance(space, Discrete):
            raise ConfigMismatchError(
                f"{self.where}: actions of {player} are {type(space).__name__}; only Discrete ones can be played here"
            )
        if not isinstance(view, Space):
            self._raise_incompatible(
                self.env.observation_space,
                f"observation_space({player!r}) is a {type(view).__name__}, no space",
            )
        if mask := find_space_mask(view):
            raise ConfigMismatchError(
                f"{self.where}: observations of {player} have {mask}; {ACTION_MASK_HINT}"
            )

    def _raise_incompatible(self, code: Any, what: str) -> NoReturn:
        """Refuses the environment, naming the place of the code of the user that is to be
        changed."""
        raise ConfigMismatchError(f"{self.where}: {what} ({format_code_location(code)})")

    def _parts(self, method: str, returned: Any, names: tuple[str, ...]) -> list[Mapping[Any, Any]]:
        """Parts of a method's return value: a dictionary by player for each name."""
        contract = f"{method} must return ({', '.join(names)}), dictionaries by player"
        if not isinstance(returned, tuple | list):
            self._raise_incompatible(
                self._code[method], f"{contract}; it returns a {type(returned).__name__}"
            )
        if len(returned) != len(names):
            self._raise_incompatible(
                self._code[method], f"{contract}; it returns {len(returned)} values"
            )
        for name, part in zip(names, returned, strict=True):
            if not isinstance(part, Mapping):
                self._raise_incompatible(
                    self._code[method], f"{contract}; its {name} are a {type(part).__name__}"
                )
        self._check_infos(method, returned[-1])
        return list(returned)

    def _check_infos(self, method: str, infos: Mapping[Any, Any]) -> None:
        for key, info in infos.items():
            sizes = [self.sizes[self.players.index(key)]] if key in self.players else self.sizes
            mask = next(filter(None, (find_info_mask({key: info}, size) for size in sizes)), None)
            if mask is not None:
                whose = f"the info of {key}" if key in self.players else "the infos"
                self._raise_incompatible(
                    self._code[method], f"has {mask} in {whose}; {ACTION_MASK_HINT}"
                )

    def _in_order(self, what: str, code: Any, agents: Any) -> list[Any]:
        """Agents in their own order."""
        if isinstance(agents, set | frozenset):
            self._raise_incompatible(
                code,
                f"{what} is a set, whose order differs from process to process; make it a list",
            )
        return list(agents)

    def _active_players(self, method: str) -> list[Any]:
        """The players that are in the game now."""
        with reraise_user_error(f"{self.where}: agents after {method}", self._code[method]):
            agents = self._in_order("agents", self._code[method], self.env.agents)
        strangers = [str(agent) for agent in agents if agent not in self.players]
        if strangers:
            self._raise_incompatible(
                self._code[method],
                f"agents has {strangers[0]!r} after {method}, who is not in possible_agents",
            )
        return agents

    def _observe(
        self, method: str, observations: Mapping[Any, Any], *, needed: bool
    ) -> list[float]:
        """The decision maker's observation, flattened.

        It is zeros if there is no observation and none is ``needed``.
        """
        from gymnasium.spaces.utils import flatten

        player = self.players[0]
        if player not in observations:
            if needed:
                self._raise_incompatible(
                    self._code[method],
                    f"the observations that {method} returns lack {player!r}, who plays on",
                )
            return [0.0] * self.width
        if misfit := find_observation_error(self.space, observations[player]):
            self._raise_incompatible(self._code[method], f"an observation of {player!r} {misfit}")
        with reraise_user_error(f"{self.where}: an observation of {player!r}", self._code[method]):
            return [float(x) for x in flatten(self.space, observations[player])]

    def begin(self, seed: int) -> EpisodeStart:
        with reraise_user_error(f"{self.where}: reset(seed={seed})", self._code["reset"]):
            returned = self.env.reset(seed=seed)
        observations, _ = self._parts("reset", returned, ("observations", "infos"))
        agents = self._active_players("reset")
        player = self.players[0]
        if agents and player not in agents:
            self._raise_incompatible(
                self._code["reset"], f"agents lacks {player!r}, the decision maker, after reset"
            )
        return EpisodeStart(self._observe("reset", observations, needed=bool(agents)), not agents)

    def move(self, actions: list[int]) -> MoveResult:
        numbers = {
            player: n + first
            for player, n, first in zip(self.players, actions, self.first, strict=True)
        }
        before = self._active_players("step")
        with reraise_user_error(f"{self.where}: step", self._code["step"]):
            # in its own order
            returned = self.env.step({player: numbers[player] for player in before})
        observations, rewards, terminations, truncations, _ = self._parts("step", returned, RETURNS)
        after = self._active_players("step")
        present = [player in before for player in self.players]
        gains = [
            self._gain(player, rewards) if acts else 0.0
            for player, acts in zip(self.players, present, strict=True)
        ]
        ends, stops = zip(
            *[self._end(p, before, after, terminations, truncations) for p in self.players],
            strict=True,
        )
        if not (ends[0] or stops[0]):
            for player, done, stopped in zip(self.players, ends, stops, strict=True):
                if (done or stopped) and player in after:
                    self._raise_stayed(player, player in before)
        observed = self._observe("step", observations, needed=not ends[0])
        return MoveResult(
            observed, gains, ends[0], stops[0] and not ends[0], present[1:], list(ends[1:])
        )

    def _raise_stayed(self, player: Any, present: bool) -> NoReturn:
        """Refuses a player in agents after its end, or after a step that it was not in before."""
        message = "is still in agents after its end; take it out of agents"
        late = "is in agents after a step that it was not in before; players cannot join later, or come back"
        self._raise_incompatible(self._code["step"], f"{player!r} {message if present else late}")

    def _gain(self, player: Any, rewards: Mapping[Any, Any]) -> float:
        if player not in rewards:
            self._raise_incompatible(
                self._code["step"],
                f"the rewards that step returns lack {player!r}, who acted; at a last move too",
            )
        gain, misfit = to_number(rewards[player])
        if misfit:
            self._raise_incompatible(self._code["step"], f"the reward of {player!r} {misfit}")
        return gain

    def _end(
        self,
        player: Any,
        before: list[Any],
        after: list[Any],
        terminations: Mapping[Any, Any],
        truncations: Mapping[Any, Any],
    ) -> tuple[bool, bool]:
        """Flags after a move: the player is at a true end; the game stops without one.

        A player that leaves ``agents`` and both dictionaries together is at a true end.
        """
        if player not in before:
            return True, False
        flags = [part[player] for part in (terminations, truncations) if player in part]
        if not flags and player not in after:
            return True, False
        if not flags:
            self._raise_incompatible(
                self._code["step"],
                f"neither terminations nor truncations have {player!r}, who acted",
            )
        for flag in flags:
            if to_flag(flag) is None:
                self._raise_incompatible(
                    self._code["step"],
                    f"terminations and truncations of {player!r} must be true or false, not {flag!r}",
                )
        ends = to_flag(terminations.get(player, False))
        stops = to_flag(truncations.get(player, False))
        if player not in after and not (ends or stops):
            message = f"{player!r} is no longer in agents, and neither its termination nor its truncation is true"
            self._raise_incompatible(self._code["step"], message)
        return bool(ends), bool(stops)

    def close(self) -> None:
        with reraise_user_error(f"{self.where}: close", self._code["close"]):
            self.env.close()


def check_seeded(
    open_one: Callable[[], ParallelGame], horizon: int, generator: torch.Generator
) -> None:
    """Play two games side by side from the same seeds with the same random actions.

    One of them has an episode behind it.

    Raises:
        ConfigMismatchError: they differ: something is drawn from elsewhere than the seed, or
            stays from the episode before.
    """
    one = open_one()
    other = open_one()
    moves = min(horizon, TRIED)

    def draw_integer(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    over = one.begin(draw_integer(2**31 - 1)).over
    for _ in range(0 if over else moves):
        moved = one.move([draw_integer(n) for n in one.sizes])
        if moved.terminated or moved.truncated:
            break
    for seed in (draw_integer(2**31 - 1), draw_integer(2**31 - 1)):
        opening = one.begin(seed)
        differ = opening != other.begin(seed)
        for move in range(0 if opening.over else moves):
            if differ:
                raise ConfigMismatchError(
                    f"{one.where}: differs after {move} moves when it is played twice from reset(seed={seed}); let all that it "
                    "draws come from that seed, and nothing stay from the episode before"
                )
            actions = [draw_integer(n) for n in one.sizes]
            moved = one.move(actions)
            same = other.move(actions)
            differ = moved != same
            if not differ and (moved.terminated or moved.truncated):
                break
        if differ:
            raise ConfigMismatchError(
                f"{one.where}: differs at its last move when it is played twice from reset(seed={seed})"
            )
    one.close()
    other.close()
