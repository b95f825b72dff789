"""Values that an environment of PettingZoo returns, as numbers and flags, and what is wrong with
them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium.spaces import Space

# Names that environments use for forbidden actions, without case and underscores.
MASK_NAME = re.compile(
    r"(action|move)s?masks?|mask(s|ed)?(of)?(action|move)s?"
    r"|(un|non|il|in)?(legal|valid|avail|available|allowed|possible|feasible|admissible|forbidden)(act|action|move)s?(masks?)?"
)


def is_mask_name(name: object) -> bool:
    """True for the names that a mask of actions goes by: action_mask, avail_actions, legal_moves
    and the like."""
    return (
        isinstance(name, str)
        and MASK_NAME.fullmatch(re.sub(r"[^a-z]", "", name.lower())) is not None
    )


def find_space_mask(space: Space[Any]) -> str | None:
    """Name of an action mask in a space, or in one inside it; None if absent."""
    from gymnasium.spaces import Dict, Tuple

    if isinstance(space, Dict):
        return next((str(key) for key in space.spaces if is_mask_name(key)), None) or _first_mask(
            space.spaces.values()
        )
    return _first_mask(space.spaces) if isinstance(space, Tuple) else None


def _first_mask(spaces: Iterable[Space[Any]]) -> str | None:
    return next(filter(None, map(find_space_mask, spaces)), None)


def find_info_mask(info: object, actions: int) -> str | None:
    """Name of an action mask in an environment's info, at any depth; None if absent.

    An entry with "mask" in its name is an action mask if it has one 0 or 1 for each action.
    """
    if not isinstance(info, Mapping):
        return None
    for key, value in info.items():
        if is_mask_name(key) or ("mask" in str(key).lower() and _is_binary(value, actions)):
            return str(key)
        if inner := find_info_mask(value, actions):
            return inner
    return None


def _is_binary(value: object, size: int) -> bool:
    try:
        array = np.asarray(value)
    except Exception:  # errors of a foreign array
        return False
    return array.size == size and array.dtype.kind in "biuf" and bool(np.isin(array, (0, 1)).all())


def parallel_conversion_hint(made: Any) -> str:
    """Advice on how to turn an object into a parallel environment; "" if there is no way."""
    from gymnasium import Env
    from pettingzoo import AECEnv

    if isinstance(made, AECEnv):
        return "; pettingzoo.utils.aec_to_parallel turns it into one"
    if isinstance(made, Env):
        return "; an environment of Gymnasium has one player, a game takes two or more"
    return "; return one (pettingzoo.utils.aec_to_parallel turns an AECEnv into one)"


def _to_single_number(value: Any) -> float | None:
    """A single number, also from an array of one; None if the value is not one number."""
    try:
        array = np.asarray(value)
    except Exception:  # errors of a foreign array, for example a tensor with gradients
        return None
    return float(array.item()) if array.size == 1 and array.dtype.kind in "biuf" else None


def to_number(value: Any) -> tuple[float, str]:
    """A reward, and what is wrong with it ("" : nothing)."""
    number = _to_single_number(value)
    if number is None:
        return 0.0, f"is {_short(value)}, must be one number"
    return (number, "") if math.isfinite(number) else (0.0, f"is not finite ({number})")


def to_flag(value: Any) -> bool | None:
    """True or false, also as a number or an array of one; None: it is neither."""
    number = _to_single_number(value)
    return bool(number) if number in (0, 1) else None


def find_observation_error(space: Space[Any], value: Any) -> str:
    """Return what is wrong with an observation of a space, "" if nothing.

    A number beyond the bounds of a box is accepted.
    """
    from gymnasium.spaces import Box, Dict, Tuple

    if isinstance(space, Box):
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return f"is {_short(value)}, no array of numbers"
        if array.shape != space.shape:
            return f"has shape {list(array.shape)}, its space has {list(space.shape)}"
        return "" if np.isfinite(array).all() else "is not finite"
    if isinstance(space, Dict):
        if not isinstance(value, dict) or set(value) != set(space.spaces):
            return f"is {_short(value)}, its space has the keys {', '.join(map(str, space.spaces))}"
        return next(
            filter(
                None,
                (find_observation_error(part, value[name]) for name, part in space.spaces.items()),
            ),
            "",
        )
    if isinstance(space, Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space.spaces):
            return f"is {_short(value)}, its space has {len(space.spaces)} parts"
        return next(filter(None, map(find_observation_error, space.spaces, value)), "")
    try:
        fits = bool(space.contains(value))
    except Exception:
        fits = False
    return "" if fits else f"is {_short(value)}, not in its space {space}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
