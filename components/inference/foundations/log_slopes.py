"""Rates: slopes of logarithms on log N, and standard errors over data sets."""

from __future__ import annotations

import math

from torch import Tensor


def log_slopes(values: Tensor, numbers: list[int]) -> Tensor:
    """Least squares of log values [..., G] on log N."""
    log_n = values.new_tensor(numbers).log()
    z = log_n - log_n.mean()
    return values.log() @ z / z.square().sum()


def standard_error(values: Tensor) -> Tensor:
    """Standard error of a mean over the first dimension; NaN for a single value."""
    return (
        values.std(0) / len(values) ** 0.5
        if len(values) > 1
        else values.new_full(values.shape[1:], math.nan)
    )
