"""Values that an environment of PettingZoo returns, as numbers and flags, and what is wrong with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium.spaces import Space

# Names under which environments say that not every action is allowed.
MASKS = (
    "action_mask", "action_masks", "legal_actions", "legal_moves", "legal_action_mask", "available_actions",
    "avail_actions", "valid_actions",
)  # fmt: skip


def mask_within(space: Space[Any]) -> bool:
    """True where a space, or one inside it, holds an action mask."""
    from gymnasium.spaces import Dict, Tuple

    if isinstance(space, Dict):
        return any(name in MASKS or mask_within(part) for name, part in space.spaces.items())
    return isinstance(space, Tuple) and any(mask_within(part) for part in space.spaces)


def _single(value: Any) -> float | None:
    """One number, also as an array of one; None: it is none."""
    try:
        array = np.asarray(value)
    except Exception:  # what a foreign array raises, a tensor that takes gradients for one
        return None
    return float(array.item()) if array.size == 1 and array.dtype.kind in "biuf" else None


def to_number(value: Any) -> tuple[float, str]:
    """A reward, and what is wrong with it ("" : nothing)."""
    number = _single(value)
    if number is None:
        return 0.0, f"is {_short(value)}, must be one number"
    return (number, "") if math.isfinite(number) else (0.0, f"is not finite ({number})")


def to_flag(value: Any) -> bool | None:
    """True or false, also as a number or an array of one; None: it is neither."""
    number = _single(value)
    return bool(number) if number in (0, 1) else None


def observation_misfit(space: Space[Any], value: Any) -> str:
    """What is wrong with an observation of a space ("": nothing); a number beyond the bounds of a box is not."""
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
        return next(filter(None, (observation_misfit(part, value[name]) for name, part in space.spaces.items())), "")
    if isinstance(space, Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space.spaces):
            return f"is {_short(value)}, its space has {len(space.spaces)} parts"
        return next(filter(None, map(observation_misfit, space.spaces, value)), "")
    try:
        fits = bool(space.contains(value))
    except Exception:
        fits = False
    return "" if fits else f"is {_short(value)}, not in its space {space}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
