"""Results of smoothers for R replicates, and of samplers over whole series.

The samplers draw parameters in addition to the states.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.posteriors import Signal
from components.maths.particles.order_statistics import quantiles
from components.posteriors.draws import Draws
from components.series.posteriors.summaries import DrawsParameters, StateSummaries


@dataclass(frozen=True)
class SmoothedSeries(StateSummaries):
    """Summaries of p(x_t | y_1:T) for all T times, with the effective sample size of the forward
    particles, and of the signal behind the observations if its noise is known."""

    signal: Signal | None = None

    @classmethod
    def empty_smoothed(cls, like: Tensor) -> SmoothedSeries:
        """Empty summaries before the first observation; like [R, …]."""
        nothing = torch.empty(len(like), 0, 0).to(like)
        return cls(nothing, nothing, nothing, nothing)


@dataclass(frozen=True)
class SampledSeries(DrawsParameters):
    """Summaries of N draws of the states x_1 … x_T by C chains for each of R replicates, and the
    draws of named parameters.

    N is 0 during burn-in; the summaries are then NaN."""

    @classmethod
    def summarise(cls, states: Tensor, parameters: Draws) -> SampledSeries:
        """The posterior of draws of states [R, C, N, T, dx] and of parameters."""
        r, _, n, times, dx = states.shape
        if n == 0:
            nothing = states.new_full((r, times, dx), float("nan"))
            return cls(nothing, nothing, nothing, nothing, parameters)
        pooled = states.reshape(r, -1, times * dx)  # [R, C·N, T·dx]
        lower, upper = quantiles(pooled, (0.05, 0.95))
        mean, variance, low, high = (
            value.unflatten(1, (times, dx))
            for value in (pooled.mean(1), pooled.var(1, correction=0), lower, upper)
        )
        return cls(mean, variance, low, high, parameters)
