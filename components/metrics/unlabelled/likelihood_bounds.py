"""Scores of models of rows without labels: bounds on their likelihood."""

from __future__ import annotations

import math

from torch import Tensor


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log S⁻¹ Σ_s exp w_s, w [S, B] -> [B]: log p(x), or a lower bound on it that tightens with S.

    Source: Burda, Grosse and Salakhutdinov (2016), eq. (8)."""
    return log_weights.logsumexp(0) - math.log(len(log_weights))


def scores(log_weights: Tensor) -> dict[str, float]:
    """From w [S, B]: ``nelbo``, minus the evidence lower bound, and ``nll_bound``, the tighter
    bound on −log p(x) from S importance weights; means over the rows, in nats per row."""
    return {
        "nelbo": -float(log_weights.mean()),
        "nll_bound": -float(log_mean_exp(log_weights).mean()),
    }


def exp_or_infinity(value: float) -> float:
    """exp of a number; infinity on overflow."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
