"""Errors of the forecast that repeats the previous season."""

from __future__ import annotations

from torch import Tensor


def carry_seasons(y: Tensor, period: int) -> Tensor:
    """y [T] with missing values (NaN) replaced from the previous season."""
    carried = y.clone()
    for t in y[period:].isnan().nonzero().flatten().tolist():
        carried[period + t] = carried[t]
    return carried


def seasonal_errors(y: Tensor, period: int) -> Tensor:
    """Errors y_t − y_{t−m} of the seasonal naive forecast of y [T], where both are known."""
    carried = carry_seasons(y, period)
    errors = y[period:] - carried[:-period]
    return errors[~errors.isnan()]
