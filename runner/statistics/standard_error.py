"""Mean over replicates and its standard error, as used by results, comparisons, MLflow and reports."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean_se(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error of the mean.

    x̄ = Σxᵢ/n,  SE = √(Σ(xᵢ − x̄)²/(n − 1))/√n; the SE is NaN for a single value, and both are NaN
    without values.  Sums are exact in any order.
    """
    n = len(values)
    if not n:
        return math.nan, math.nan
    mean = math.fsum(values) / n
    se = (
        math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1)) / math.sqrt(n)
        if n > 1
        else math.nan
    )
    return mean, se
