"""Step sizes with cosine decay."""

from __future__ import annotations

import math


def cosine_anneal(first: float, last: float, t: int, steps: int) -> float:
    """last + ½ (first − last) (1 + cos(π t/steps)) after t steps, and ``last`` from t = steps on.

    Source: Loshchilov and Hutter (2017), eq. (5), without restarts."""
    if t >= steps:
        return last
    return last + 0.5 * (first - last) * (1 + math.cos(math.pi * (t / steps)))
