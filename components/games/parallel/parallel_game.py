"""A parallel environment of PettingZoo as a game with numbers for actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from components.games.parallel.parallel_values import (
    find_info_mask,
    find_observation_error,
    to_flag,
    to_number,
)
from components.games.parallel.players import ACTION_MASK_HINT, find_spaces, order_players
from components.games.parallel.user_environment import UserEnvironment

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
        self.user = UserEnvironment(made, where)
        self.where = where
        self.env = self.user.env
        self.players = order_players(self.user, agent)
        spaces, self.space, self.width = find_spaces(self.user, self.players)
        self.first = [int(space.start) for space in spaces]
        self.sizes = [int(space.n) for space in spaces]

    def _parts(self, method: str, returned: Any, names: tuple[str, ...]) -> list[Mapping[Any, Any]]:
        """Parts of a method's return value: a dictionary by player for each name."""
        contract = f"{method} must return ({', '.join(names)}), dictionaries by player"
        if not isinstance(returned, tuple | list):
            self.user.refuse(f"{contract}; it returns a {type(returned).__name__}", method)
        if len(returned) != len(names):
            self.user.refuse(f"{contract}; it returns {len(returned)} values", method)
        for name, part in zip(names, returned, strict=True):
            if not isinstance(part, Mapping):
                self.user.refuse(f"{contract}; its {name} are a {type(part).__name__}", method)
        self._check_infos(method, returned[-1])
        return list(returned)

    def _check_infos(self, method: str, infos: Mapping[Any, Any]) -> None:
        for key, info in infos.items():
            sizes = [self.sizes[self.players.index(key)]] if key in self.players else self.sizes
            mask = next(filter(None, (find_info_mask({key: info}, size) for size in sizes)), None)
            if mask is not None:
                whose = f"the info of {key}" if key in self.players else "the infos"
                self.user.refuse(f"has {mask} in {whose}; {ACTION_MASK_HINT}", method)

    def _active_players(self, method: str) -> list[Any]:
        """The players that are in the game now."""
        with self.user.calls(f"agents after {method}", method):
            agents = self.user.in_order("agents", self.env.agents, method)
        strangers = [str(agent) for agent in agents if agent not in self.players]
        if strangers:
            self.user.refuse(
                f"agents has {strangers[0]!r} after {method}, who is not in possible_agents", method
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
                self.user.refuse(
                    f"the observations that {method} returns lack {player!r}, who plays on", method
                )
            return [0.0] * self.width
        if misfit := find_observation_error(self.space, observations[player]):
            self.user.refuse(f"an observation of {player!r} {misfit}", method)
        with self.user.calls(f"an observation of {player!r}", method):
            return [float(x) for x in flatten(self.space, observations[player])]

    def begin(self, seed: int) -> EpisodeStart:
        """Resets the environment."""
        with self.user.calls(f"reset(seed={seed})", "reset"):
            returned = self.env.reset(seed=seed)
        observations, _ = self._parts("reset", returned, ("observations", "infos"))
        agents = self._active_players("reset")
        player = self.players[0]
        if agents and player not in agents:
            self.user.refuse(f"agents lacks {player!r}, the decision maker, after reset", "reset")
        return EpisodeStart(self._observe("reset", observations, needed=bool(agents)), not agents)

    def move(self, actions: list[int]) -> MoveResult:
        """Takes a step with the actions of all players by number."""
        players = self.players
        numbers = {
            player: n + first for player, n, first in zip(players, actions, self.first, strict=True)
        }
        before = self._active_players("step")
        with self.user.calls("step", "step"):
            # in its own order
            returned = self.env.step({player: numbers[player] for player in before})
        observations, rewards, *flags, _ = self._parts("step", returned, RETURNS)
        after = self._active_players("step")
        gains = [self._gain(player, rewards) if player in before else 0.0 for player in players]
        ends, stops = zip(*[self._end(p, before, after, flags) for p in players], strict=True)
        if not (ends[0] or stops[0]):
            for player, done, stopped in zip(players, ends, stops, strict=True):
                if (done or stopped) and player in after:
                    self._refuse_stay(player, player in before)
        observed = self._observe("step", observations, needed=not ends[0])
        present = [player in before for player in players[1:]]
        return MoveResult(
            observed, gains, ends[0], stops[0] and not ends[0], present, list(ends[1:])
        )

    def _refuse_stay(self, player: Any, present: bool) -> None:
        """Refuses a player in agents after its end, or after a step that it was not in before."""
        message = "is still in agents after its end; take it out of agents"
        late = "is in agents after a step that it was not in before; players cannot join later, or come back"
        self.user.refuse(f"{player!r} {message if present else late}", "step")

    def _gain(self, player: Any, rewards: Mapping[Any, Any]) -> float:
        if player not in rewards:
            self.user.refuse(
                f"the rewards that step returns lack {player!r}, who acted; at a last move too",
                "step",
            )
        gain, misfit = to_number(rewards[player])
        if misfit:
            self.user.refuse(f"the reward of {player!r} {misfit}", "step")
        return gain

    def _end(
        self, player: Any, before: list[Any], after: list[Any], flags: list[Mapping[Any, Any]]
    ) -> tuple[bool, bool]:
        """Terminations and truncations after a move: the player is at a true end; the game stops
        without one.

        A player that leaves ``agents`` and both dictionaries together is at a true end.
        """
        given = [part[player] for part in flags if player in part]
        if player not in before or (not given and player not in after):
            return True, False
        if not given:
            self.user.refuse(
                f"neither terminations nor truncations have {player!r}, who acted", "step"
            )
        for flag in given:
            if to_flag(flag) is None:
                self.user.refuse(
                    f"terminations and truncations of {player!r} must be true or false, not {flag!r}",
                    "step",
                )
        ends, stops = (bool(to_flag(part.get(player, False))) for part in flags)
        if player not in after and not (ends or stops):
            self.user.refuse(
                f"{player!r} is no longer in agents, and neither its termination nor its truncation is true",
                "step",
            )
        return ends, stops

    def close(self) -> None:
        """Closes the environment."""
        with self.user.calls("close", "close"):
            self.env.close()
