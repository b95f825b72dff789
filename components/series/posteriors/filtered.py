"""Results of a filter: filtering distributions of R replicates at every time so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from components.contracts.traces import Trace
from components.posteriors.draws import Draws

SUMMARIES = ("mean", "variance", "lower", "upper", "predicted")


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
    ess: Tensor | None = None  # effective sample size before resampling [R, T]; None: no particles
    weight: Tensor | None = None  # of each observation, in the filter's update [R, T]


@dataclass(frozen=True, kw_only=True)
class LearnedSeries(Filtered):
    """Results of a filter that also learns parameters: weighted draws of p(θ | y_1:T).

    The rest is as in ``Filtered``.
    """

    parameters: Draws  # [R, M, P], with log weights

    def artefacts(self, folder: Path) -> list[Path]:
        """Write the parameter draws of the first replicate to a run's folder; return the paths."""
        return self.parameters.artefacts(folder)


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
    ess: Trace = field(default_factory=Trace)  # rows [R]; none if there are no particles
    # rows [R]; none where a method gives each observation the same weight
    weight: Trace = field(default_factory=Trace)

    @classmethod
    def for_times(cls, times: int, log_normaliser: Tensor, evidence: bool = True) -> Filtering:
        """The start of a series of T times: rows are not copied while they grow."""
        return cls(
            mean=Trace(expected=times),
            variance=Trace(expected=times),
            lower=Trace(expected=times),
            upper=Trace(expected=times),
            predicted=Trace(expected=times),
            log_normaliser=log_normaliser,
            evidence=evidence,
        )

    def _traces(self) -> tuple[Trace, Trace, Trace, Trace, Trace]:
        return self.mean, self.variance, self.lower, self.upper, self.predicted

    def add(
        self,
        t: int,
        *,
        mean: Tensor,
        variance: Tensor,
        lower: Tensor,
        upper: Tensor,
        predicted: Tensor,
        ess: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> None:
        """Append the summaries at time t = 1, 2, …, [R, dx] each, [R, dy] and [R]."""
        self.mean.append(mean)
        self.variance.append(variance)
        self.lower.append(lower)
        self.upper.append(upper)
        self.predicted.append(predicted)
        if ess is not None:
            self.ess.append(ess)
        if weight is not None:
            self.weight.append(weight)
        self.t = t

    def newest(self) -> dict[str, Tensor]:
        """Summaries of the latest call of ``add``."""
        rows = zip(SUMMARIES, self._traces(), strict=True)
        newest = {name: trace.rows[-1] for name, trace in rows}
        return newest | {"ess": self.ess.rows[-1]} if len(self.ess) == self.t else newest

    def current_posterior(self) -> Filtered:
        """The posterior after the times that have been filtered."""
        like = self.log_normaliser
        if self.t == 0:
            summaries = dict.fromkeys(SUMMARIES, torch.empty(len(like), 0, 0).to(like))
            optional: dict[str, Tensor] = {}
        else:
            traces = zip(SUMMARIES, self._traces(), strict=True)
            summaries = {name: trace.stack_rows(1).to(like.device) for name, trace in traces}
            optional = {
                name: trace.stack_rows(1).to(like.device)
                for name, trace in (("ess", self.ess), ("weight", self.weight))
                if len(trace) == self.t
            }
        return Filtered(
            t=self.t, log_normaliser=like, evidence=self.evidence, **summaries, **optional
        )
