"""Variances with an upper limit on the standard deviation, by exact draws of truncated gamma
variables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from components.maths.compiled.normals import GOLDEN, S11, STEP, mixed


def counter_uniform(seed: Any, k: int) -> float:
    """The k-th uniform number in (0, 1], by hashing a counter."""
    return (np.float64(np.int64(mixed(seed + np.uint64(k) * GOLDEN) >> S11)) + 1.0) * STEP


def sample_gamma(a: float, seed: Any, k: int) -> tuple[float, int]:
    """A draw of Gamma(a, 1) from the hashed numbers starting at the k-th, and the next index; for a
    < 1 a draw for a + 1, times u^{1/a}.

    Source: Marsaglia & Tsang (2000)."""
    boost = 1.0
    shape = a
    if a < 1:
        boost = counter_uniform(seed, k) ** (1 / a)
        k += 1
        shape = a + 1
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        x = math.sqrt(-2 * math.log(counter_uniform(seed, k))) * math.cos(
            2 * math.pi * counter_uniform(seed, k + 1)
        )
        u = counter_uniform(seed, k + 2)
        k += 3
        v = 1 + c * x
        v = v * v * v
        if v > 0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost, k


def sample_gamma_above(a: float, c: float, seed: Any) -> float:
    """A draw of Gamma(a, 1) truncated to at least c, by rejection.

    Proposals are gamma draws unless c is far above their mean, otherwise exponential draws above c,
    with the slope of the concave log density at c as rate.

    Source: Dagpunar (1978); Philippe (1997).
    """
    k = 0
    if c <= a + math.sqrt(a):
        while True:
            g, k = sample_gamma(a, seed, k)
            if g >= c:
                return g
    rate = 1 - max(a - 1, 0.0) / c
    while True:
        x = c - math.log(counter_uniform(seed, k)) / rate
        bound = (a - 1) * (math.log(x / c) - (x - c) / c) if a > 1 else (a - 1) * math.log(x / c)
        if math.log(counter_uniform(seed, k + 1)) <= bound:
            return x
        k += 2


def variance_from_gamma(g: float, a: float, half: float, upper: float) -> float:
    """σ² = half/g for g ~ Gamma(a, 1) given σ ≤ upper; a g that violates the limit only seeds a
    truncated draw."""
    least = half / (upper * upper)
    if g >= least:
        return half / g
    return half / sample_gamma_above(a, least, np.float64(g).view(np.uint64))
