"""Players of a parallel environment, and the spaces of their actions and observations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from components.errors import ConfigMismatchError
from components.games.parallel.parallel_values import find_space_mask
from components.games.parallel.user_environment import UserEnvironment

if TYPE_CHECKING:
    from gymnasium.spaces import Discrete, Space

# joint actions, and observed numbers, of a game that fits in tables or weights
MOST = 1_000_000
ACTION_MASK_HINT = (
    "every action must be allowed at every move; let a forbidden one do "
    "nothing, or cost something, and drop the mask"
)


def order_players(user: UserEnvironment, agent: str | int | None) -> list[Any]:
    """The decision maker, and then the others.

    Raises:
        ConfigMismatchError: the agent is not among them, there is one, or two have the same name.
    """
    where = user.where
    with user.calls("possible_agents, which must name all players that there can be"):
        players = user.in_order("possible_agents", user.env.possible_agents)
    names = [str(player) for player in players]
    if len(set(names)) < len(names):
        user.refuse(f"possible_agents names a player twice: {', '.join(names)}")
    if len(players) < 2:
        raise ConfigMismatchError(f"{where}: has {len(players)} player, a game takes two or more")
    if agent is not None and str(agent) not in names:
        raise ConfigMismatchError(
            f"dataset.agent={agent}: no player of {where.partition('=')[2]}, which has {', '.join(names)}"
        )
    index = 0 if agent is None else names.index(str(agent))
    return [players[index], *players[:index], *players[index + 1 :]]


def check_spaces(user: UserEnvironment, player: Any, space: object, view: object) -> None:
    """Checks the spaces of a player's actions and observations.

    Raises:
        ConfigMismatchError: actions are not discrete, or there is a mask.
    """
    from gymnasium.spaces import Discrete, Space

    if not isinstance(space, Discrete):
        raise ConfigMismatchError(
            f"{user.where}: actions of {player} are {type(space).__name__}; only Discrete ones can be played here"
        )
    if not isinstance(view, Space):
        kind = type(view).__name__
        user.refuse(
            f"observation_space({player!r}) is a {kind}, no space", user.env.observation_space
        )
    if mask := find_space_mask(view):
        raise ConfigMismatchError(
            f"{user.where}: observations of {player} have {mask}; {ACTION_MASK_HINT}"
        )


def find_spaces(
    user: UserEnvironment, players: list[Any]
) -> tuple[list[Discrete[Any]], Space[Any], int]:
    """Spaces of the players' actions, the space of the decision maker's observations, and the
    number of its numbers.

    Raises:
        ConfigMismatchError: they fit no game.
    """
    from gymnasium.spaces.utils import flatdim

    with user.calls("action_space or observation_space"):
        spaces = [user.env.action_space(player) for player in players]
        views = [user.env.observation_space(player) for player in players]
    for player, space, view in zip(players, spaces, views, strict=True):
        check_spaces(user, player, space, view)
    observed = f"{user.where}: observations of {players[0]}"
    if not views[0].is_np_flattenable:
        raise ConfigMismatchError(f"{observed} are {type(views[0]).__name__}, of no fixed size")
    width = flatdim(views[0])
    if not width:
        raise ConfigMismatchError(
            f"{observed} hold no number; observe at least one, always 0 if need be"
        )
    joint = math.prod(int(space.n) for space in spaces)
    sizes = {
        "joint actions": joint,
        f"numbers in an observation of {players[0]}": width,
    }
    for quantity, count in sizes.items():
        if count > MOST:
            raise ConfigMismatchError(
                f"{user.where}: has {count:,} {quantity}, more than {MOST:,}; make fewer of them"
            )
    return spaces, views[0], width
