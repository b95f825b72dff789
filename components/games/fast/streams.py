"""Random numbers inside a compiled episode: SplitMix64, a counter for each replicate.

Source: Steele, Lea and Flood (2014)."""

from __future__ import annotations

import numpy as np

from components.maths.compiled.loops import Array
from components.maths.compiled.normals import FIRST, GOLDEN, S11, STEP, mixed


def init_stream(seed: Array, replicate: int, stream: Array) -> None:
    """Initialise the counter [1] of a replicate; the distance FIRST between replicates exceeds the
    draws of an episode."""
    stream[0] = seed[0] + np.uint64(replicate) * FIRST


def draw_uniform(stream: Array) -> float:
    """Return the next number in [0, 1), a multiple of 2⁻⁵³."""
    stream[0] += GOLDEN
    return np.int64(mixed(stream[0]) >> S11) * STEP


def draw_index(p: Array, n: int, u: float) -> int:
    """Return an index below n with probabilities p, by inversion of their cumulative sums at u."""
    total = 0.0
    index = 0
    for i in range(n - 1):
        total += p[i]
        index += u >= total
    return index
