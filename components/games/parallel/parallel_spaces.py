"""Players of a parallel environment, and the spaces of their actions and observations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from components.errors import ConfigMismatchError

# names of masks of actions in environments, in lower case without underscores
MASK_NAME = re.compile(
    r"(action|move)s?masks?|mask(s|ed)?(of)?(action|move)s?"
    r"|(un|non|il|in)?(legal|valid|avail|available|allowed|possible|feasible|admissible|forbidden)(act|action|move)s?(masks?)?"
)


def check_no_mask(keys: Iterable[object], what: str) -> None:
    """Check the keys of observations or infos: every action must be allowed at every move.

    Raises:
        ValueError: one is the name of a mask of actions, e.g. action_mask, avail_actions,
            legal_moves."""
    for key in keys:
        if MASK_NAME.fullmatch(re.sub(r"[^a-z]", "", str(key).lower())):
            raise ValueError(
                f"{what} has {key}; every action must be allowed at every move; give forbidden "
                "actions no effect or a cost, and remove the mask"
            )


def order_players(possible_agents: Any, agent: str | int | None, where: str) -> list[Any]:
    """Return the decision maker, followed by the others.

    Raises:
        ConfigMismatchError: the agent is not among the players, there is only one player, or they
            have no order.
    """
    if isinstance(possible_agents, set | frozenset):
        raise ConfigMismatchError(
            f"{where}: possible_agents is a set, with a different order in each process; use a list"
        )
    players = list(possible_agents)
    names = [str(player) for player in players]
    if len(players) < 2:
        raise ConfigMismatchError(
            f"{where}: has {len(players)} player, but a game requires two or more"
        )
    if agent is not None and str(agent) not in names:
        raise ConfigMismatchError(
            f"dataset.agent={agent}: not a player of {where.partition('=')[2]}, which has {', '.join(names)}"
        )
    index = 0 if agent is None else names.index(str(agent))
    return [players[index], *players[:index], *players[index + 1 :]]


def check_spaces(player: Any, action_space: Any, observation_space: Any) -> None:
    """Check the spaces of a player's actions and observations.

    Raises:
        ValueError: actions are not discrete, observations have no fixed size, or there is a mask.
    """
    from gymnasium.spaces import Dict, Discrete

    if not isinstance(action_space, Discrete):
        kind = type(action_space).__name__
        raise ValueError(f"actions of {player} are {kind}; only Discrete ones are supported")
    if not observation_space.is_np_flattenable:
        kind = type(observation_space).__name__
        raise ValueError(f"observations of {player} are {kind}, which has no fixed size")
    if isinstance(observation_space, Dict):
        check_no_mask(observation_space.spaces, f"the observation of {player}")
