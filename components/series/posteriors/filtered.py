"""Results of a filter: filtering distributions of R replicates at every time so far."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from components.contracts.checks import Check
from components.contracts.roles import FinishedRun
from components.contracts.traces import Trace
from components.metrics import limits
from components.posteriors.draws import Draws
from components.series.posteriors.summaries import (
    DrawsParameters,
    StateSummaries,
    observation_checks,
)

SUMMARIES = ("mean", "variance", "lower", "upper", "predicted")


@dataclass(frozen=True)
class Filtered(StateSummaries):
    """Summaries of p(x_t | y_1:t) for the times t = 1 … T so far."""

    t: int  # T
    predicted: Tensor  # E[y_t | y_1:t−1] [R, T, dy]
    log_normaliser: Tensor  # log ∏_t ∫ G_t dπ_t|t−1 [R]
    evidence: bool = True  # G is the likelihood, and the normaliser the evidence
    weight: Tensor | None = None  # weight of each observation in the filter's update [R, T]

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks of the particles, or of the weights of the observations."""
        if self.ess is not None or self.weight is None:
            return super().checks(run)
        return observation_checks(self.weight > limits.MIN_USED_SHARE, run)


@dataclass(frozen=True, kw_only=True)
class LearnedSeries(DrawsParameters, Filtered):
    """Results of a filter that also learns parameters: weighted draws of p(θ | y_1:T).

    The rest is as in ``Filtered``.
    """

    # [R, M, P], with log weights
    parameters: Draws


@dataclass(kw_only=True)
class Filtering:
    """Results of a running filter, as a part of its state: a trace for each summary."""

    t: int = 0  # times filtered so far
    # mean, variance, lower and upper [R, dx], predicted [R, dy], ess and weight [R]
    rows: defaultdict[str, Trace] = field(default_factory=lambda: defaultdict(Trace))
    log_normaliser: Tensor  # [R]
    evidence: bool = True

    @classmethod
    def for_times(cls, times: int, log_normaliser: Tensor, evidence: bool) -> Filtering:
        """Empty results with room for T times, so that traces are not copied as they grow."""
        rows: defaultdict[str, Trace] = defaultdict(partial(Trace, expected=times))
        return cls(rows=rows, log_normaliser=log_normaliser, evidence=evidence)

    def add(self, t: int, **summaries: Tensor | None) -> None:
        """Append the summaries at time t = 1, 2, … that are not None."""
        for name, value in summaries.items():
            if value is not None:
                self.rows[name].append(value)
        self.t = t

    def newest(self) -> dict[str, Tensor]:
        """Summaries of the latest call of ``add``."""
        return {name: trace.rows[-1] for name, trace in self.rows.items()}

    def current_posterior(self) -> Filtered:
        """The posterior after the time steps so far."""
        like = self.log_normaliser
        summaries = dict.fromkeys(SUMMARIES, torch.empty(len(like), 0, 0).to(like))
        for name, trace in self.rows.items():
            summaries[name] = trace.stack_rows(1).to(like.device)
        return Filtered(t=self.t, log_normaliser=like, evidence=self.evidence, **summaries)
