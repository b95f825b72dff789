"""Line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9  # c₁ and c₂ of Nocedal and Wright for quasi-Newton directions
EXTRAPOLATION = 4.0


@dataclass(frozen=True)
class Trial:
    """φ(α), φ'(α), and any value computed with them (gradients at α)."""

    step: float
    value: float
    slope: float
    found: Any = None


def _between(low: Trial, high: Trial) -> float:
    """Minimiser of the cubic through both ends if it is at least a tenth of the interval away from
    them, otherwise the midpoint.
    """
    gap = high.step - low.step
    if not math.isfinite(high.value) or not math.isfinite(high.slope):
        return low.step + 0.25 * gap
    d1 = low.slope + high.slope - 3 * (low.value - high.value) / (low.step - high.step)
    square = d1 * d1 - low.slope * high.slope
    if square < 0 or not math.isfinite(square):
        return low.step + 0.5 * gap
    d2 = math.copysign(math.sqrt(square), gap)
    bottom = high.slope - low.slope + 2 * d2
    # eq. (3.59)
    step = high.step - gap * (high.slope + d2 - d1) / bottom if bottom else low.step + 0.5 * gap
    fraction = min(max((step - low.step) / gap, 0.1), 0.9)
    return low.step + fraction * gap


def strong_wolfe(
    phi: Callable[[float], Trial], start: Trial, step: float, max_evaluations: int
) -> tuple[Trial | None, int]:
    """Step α > 0 that satisfies the strong Wolfe conditions, and the number of evaluations.

    φ(α) ≤ φ(0) + c₁ α φ'(0) and |φ'(α)| ≤ c₂ |φ'(0)|.  Bracketing and zooming are one loop:
    [low, high] always holds such a step once ``high`` exists, and low is the best point of
    sufficient decrease.  A value that is not finite means that the step is too long.  If the
    evaluations are used up, or the interval has zero width, the best point of sufficient decrease
    is returned; None if there is no such point.

    Source: Nocedal and Wright (2006), Algorithms 3.5 and 3.6.
    """
    low = start
    high = None
    for evaluation in range(1, max_evaluations + 1):
        trial = phi(step)
        # written so that NaN counts as a step that is too long
        decreased = trial.value <= start.value + SUFFICIENT_DECREASE * step * start.slope
        if not decreased or not (low is start or trial.value < low.value):
            high = trial
        else:
            if abs(trial.slope) <= -CURVATURE * start.slope:
                return trial, evaluation
            if high is None:
                high = low if trial.slope >= 0 else None
            elif trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial
        if high is None:
            step = EXTRAPOLATION * low.step
        else:
            if abs(high.step - low.step) <= 1e-12 * max(high.step, low.step):
                break
            step = _between(low, high)
    return (None if low is start else low), evaluation
