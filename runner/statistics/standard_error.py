"""Mean over replicates and its standard error, as used by results, comparisons, MLflow and reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


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


def mean_columns(values: Mapping[str, Sequence[float]], ending: str) -> dict[str, float]:
    """Columns of a table: mean over replicates of each score, and its standard error under the name
    of the score with an ending."""
    columns = {}
    for name, each in values.items():
        columns[name], columns[f"{name}{ending}"] = mean_se(each)
    return columns
