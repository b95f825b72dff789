"""Process-wide streams of random numbers, from which draws are not reproducible."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

GLOBAL_STREAM_FIXES = {
    "Python's": "draw with random.Random(seed), with a seed drawn from a generator of rng",
    "NumPy's": "draw with numpy.random.default_rng(seed), with a seed drawn from a generator of rng",
    "PyTorch's": "pass a generator of rng to the function that draws, or seed it inside "
    "torch.random.fork_rng()",
}


def stand() -> dict[str, Any]:
    """State of each global generator, by its name."""
    _, words, position, *_ = np.random.get_state(legacy=True)
    return {
        "Python's": random.getstate(),
        "NumPy's": (np.asarray(words).tobytes(), position),
        "PyTorch's": torch.get_rng_state().numpy().tobytes(),
    }


def drawn_from(before: dict[str, Any]) -> str | None:
    """Name of a stream that has advanced since then; None if none has."""
    return next((name for name, state in stand().items() if state != before[name]), None)
