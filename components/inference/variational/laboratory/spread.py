"""Spread of gradient estimates: streaming measurements of an estimator over its draws."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities.modules import Trainable
from components.contracts.costs.counts import Costs, counting
from components.contracts.problems import RowBatch
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.by_parameter import flat

GROUPS = 10  # number of groups of batches in a test of bias
BACKWARD = 2  # cost of a backward pass in forward passes


@dataclass
class MeasuredEstimator:
    """A gradient estimator with its name in the tables, its learned state, and the noise for
    learning.
    """

    label: str
    estimator: Gradient
    state: Any  # None if there is nothing to learn
    rng: Rng

    def learn(self, module: Trainable, batch: RowBatch) -> None:
        """Update the estimator's state by one estimate."""
        self.state = self.estimator.estimate(module, batch, self.rng, self.state)[2]

    def estimate(
        self, module: Trainable, batch: RowBatch, rng: Rng, chosen: list[bool]
    ) -> tuple[Tensor, float]:
        """ĝ/N of the chosen parameters, concatenated [P], and its time in seconds.

        The estimator's state does not change: a copy learns from this noise, so that all draws are
        from the same estimator."""
        state = copy.deepcopy(self.state)
        began = time.perf_counter()
        gradients = self.estimator.estimate(module, batch, rng, state)[0]
        seconds = time.perf_counter() - began
        pairs = zip(gradients, module.parameters(), chosen, strict=True)
        chosen_grads, parameters = zip(
            *((g, p) for g, p, is_chosen in pairs if is_chosen), strict=True
        )
        return flat(chosen_grads, parameters).detach().double() / (
            batch.scale * batch.n_rows
        ), seconds

    def count_passes(
        self, module: Trainable, batch: RowBatch, rng: Rng, chosen: list[bool]
    ) -> float:
        """Rows through the model in one estimate; a backward pass counts as two."""
        costs = Costs()
        with counting(costs):
            self.estimate(module, batch, rng, chosen)
        return costs.forwards + BACKWARD * batch.n_rows * costs.gradients


@dataclass(frozen=True)
class Spread:
    """Moments of n estimates ĝ [P] of one gradient."""

    n: int
    mean: Tensor  # [P]
    variance: Tensor  # unbiased [P]
    norm_variance: float  # of ‖ĝ‖, as in the thesis

    @property
    def trace(self) -> float:
        """Tr Cov[ĝ], the sum of the variances: the objective of Boustati (2021), eq. (4.8)."""
        return float(self.variance.sum())


def measure_spread(draws: Iterable[Tensor]) -> Spread:
    """Moments of estimates, one by one (Welford's recursion: no [n, P] tensor is held)."""
    n = 0
    mean = torch.zeros(())
    square = torch.zeros(())
    norms: list[float] = []
    for gradient in draws:
        n += 1
        apart = gradient - mean
        mean = mean + apart / n
        square = square + apart * (gradient - mean)
        norms.append(float(gradient.norm()))
    return Spread(n, mean, square / (n - 1), statistics.variance(norms))


def time_ratios(seconds: list[list[float]]) -> list[float]:
    """Median over rounds of each estimator's time over the first estimator's in that round."""
    return [
        statistics.median(t / t0 for t, t0 in zip(times, seconds[0], strict=True))
        for times in seconds
    ]


@dataclass(frozen=True)
class Over:
    """Total variance and bias, from two estimates at each of M fresh batches."""

    total: float  # Tr Cov[ĝ], due to the noise and the choice of rows
    minibatch_share: float  # Tr Cov_B[E[ĝ|B]] / Tr Cov[ĝ]
    # ‖E ĝ − E ĝ₀‖², ĝ₀ of the first estimator: an unbiased estimate, which may be negative
    bias: float
    bias_p: float  # p-value of the hypothesis that both have the same mean
    bias_z: float  # p as a standard normal quantile; 0 for p above ½


@dataclass
class SquaredMean:
    """Unbiased estimate of ‖E v‖², the mean product of pairs of different vectors among n vectors
    v."""

    n: int = 0
    total: Tensor = field(default_factory=lambda: torch.zeros(()))  # Σ v [P]
    squares: float = 0.0  # Σ ‖v‖²

    def add(self, v: Tensor) -> None:
        self.n += 1
        self.total = self.total + v
        self.squares += float(v.square().sum())

    @property
    def value(self) -> float:
        return (float(self.total.square().sum()) - self.squares) / (self.n * (self.n - 1))


@dataclass
class PairMoments:
    """Sums over batches of two estimates at each, of one estimator."""

    product: float = 0.0  # Σ ĝᵀĝ'
    within: float = 0.0  # Σ ½ ‖ĝ − ĝ'‖²
    mean: SquaredMean = field(default_factory=SquaredMean)  # of ḡ_B, the mean of the two
    # of ḡ_B minus ḡ_B of the first estimator, by group of batches
    groups: list[SquaredMean] = field(default_factory=list)

    def add(self, one: Tensor, two: Tensor) -> Tensor:
        """Add the mean ḡ_B of a batch."""
        mean = (one + two) / 2
        self.product += float(one @ two)
        self.within += 0.5 * float((one - two).square().sum())
        self.mean.add(mean)
        return mean

    def over(self, size: int) -> Over:
        """Variance and bias; the bias uses complete groups only."""
        n = self.mean.n
        between = self.product / n - self.mean.value
        total = between + self.within / n
        share = between / total if total > 0 else math.nan
        return Over(total, share, *_test_mean([g.value for g in self.groups if g.n == size]))


def spread_over_batches(
    watched: list[MeasuredEstimator],
    module: Trainable,
    batches: Iterable[RowBatch],
    rngs: list[Rng],
    chosen: list[bool],
) -> list[Over]:
    """Share of the variance due to the choice of rows, and test for the mean of the first
    estimator.

    Two estimates at a batch are independent given the batch: their mean product minus ‖E ĝ‖² is the
    trace of Cov_B, and half their squared difference is the trace of the noise.  d_B, the mean of
    the two minus the mean of the first estimator's two, is independent between batches: products of
    d at two batches have mean ‖bias‖² for any number of parameters.  Each of at most ``GROUPS``
    groups of batches has its mean over all pairs, and a one-sided t-test asks if the mean over
    groups is above 0.
    """
    batches = list(batches)
    size = len(batches) // min(GROUPS, len(batches) // 2)
    moments = [PairMoments() for _ in watched]
    for n, batch in enumerate(batches):
        means = [
            sums.add(*(estimator.estimate(module, batch, rng, chosen)[0] for _ in range(2)))
            for sums, estimator, rng in zip(moments, watched, rngs, strict=True)
        ]
        for sums, mean in zip(moments, means, strict=True):
            if n % size == 0:
                sums.groups.append(SquaredMean())
            sums.groups[-1].add(mean - means[0])
    return [sums.over(size) for sums in moments]


def _test_mean(values: list[float]) -> tuple[float, float, float]:
    """Mean, p-value of a one-sided t-test of zero mean, and p as a normal quantile."""
    from scipy.stats import norm, t

    mean = statistics.mean(values)
    sd = statistics.stdev(values)
    if sd == 0:
        return mean, float(mean <= 0), math.inf if mean > 0 else 0.0
    p = float(t.sf(mean / sd * math.sqrt(len(values)), len(values) - 1))
    return mean, p, max(0.0, float(norm.isf(p)))
