"""What a filter hands back: the filtering distributions of R replicates at every time so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from components.contracts.traces import Trace


@dataclass(frozen=True)
class Filtered:
    """Summaries of p(x_t | y_1:t) for the times t = 1 … T so far."""

    t: int  # T
    mean: Tensor  # [R, T, dx]
    variance: Tensor  # [R, T, dx]
    lower: Tensor  # 5 % quantile [R, T, dx]
    upper: Tensor  # 95 % quantile [R, T, dx]
    predicted: Tensor  # E[y_t | y_1:t−1] [R, T, dy]
    log_normaliser: Tensor  # log ∏_t ∫ G_t dπ_t|t−1 [R]
    evidence: bool = True  # G is the likelihood, and the normaliser the evidence


@dataclass(kw_only=True)
class Filtering:
    """The same while a filter goes on, which adds a row to each: a part of its state."""

    t: int = 0  # times filtered so far
    mean: Trace = field(default_factory=Trace)  # rows [R, dx]
    variance: Trace = field(default_factory=Trace)  # rows [R, dx]
    lower: Trace = field(default_factory=Trace)  # rows [R, dx]
    upper: Trace = field(default_factory=Trace)  # rows [R, dx]
    predicted: Trace = field(default_factory=Trace)  # rows [R, dy]
    log_normaliser: Tensor  # [R]
    evidence: bool = True

    def __post_init__(self) -> None:
        for trace in self._traces():
            trace.cut(self.t)

    def _traces(self) -> tuple[Trace, Trace, Trace, Trace, Trace]:
        return self.mean, self.variance, self.lower, self.upper, self.predicted

    def add(self, t: int, *, mean: Tensor, variance: Tensor, lower: Tensor, upper: Tensor, predicted: Tensor) -> None:
        """What is known at time t = 1, 2, …, [R, dx] each and [R, dy]."""
        self.mean.append(mean)
        self.variance.append(variance)
        self.lower.append(lower)
        self.upper.append(upper)
        self.predicted.append(predicted)
        self.t = t

    def so_far(self) -> Filtered:
        """The posterior after the times that have been filtered."""
        like = self.log_normaliser
        if self.t == 0:
            nothing = torch.empty(len(like), 0, 0).to(like)
            return Filtered(0, nothing, nothing, nothing, nothing, nothing, like, self.evidence)
        mean, variance, lower, upper, predicted = (trace.stacked(1).to(like.device) for trace in self._traces())
        return Filtered(self.t, mean, variance, lower, upper, predicted, like, self.evidence)
