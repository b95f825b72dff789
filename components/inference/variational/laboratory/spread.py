"""How far the estimates of a gradient lie apart: what a laboratory measures of an estimator,
streamed over its draws."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities.modules import Trainable
from components.contracts.costs.counts import Costs, counting
from components.contracts.problems import RowBatch
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.by_parameter import flat

GROUPS = 10  # of batches, behind a test of bias
BACKWARD = 2  # forward passes that a backward one costs


@dataclass
class MeasuredEstimator:
    """An estimator of gradients, its name in the tables, what it has learnt so far and the noise
    that it learns by."""

    label: str
    estimator: Gradient
    state: Any  # None: there is nothing to learn
    rng: Rng

    def learn(self, module: Trainable, batch: RowBatch) -> None:
        """One estimate, for what it teaches the estimator."""
        self.state = self.estimator.estimate(module, batch, self.rng, self.state)[2]

    def estimate(
        self, module: Trainable, batch: RowBatch, rng: Rng, chosen: list[bool]
    ) -> tuple[Tensor, float]:
        """ĝ/N of the chosen parameters end to end [P] and the seconds that it took.

        What the estimator has learnt stays as it is: a copy learns from this noise, so that all
        draws are of one estimator."""
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
        """Rows through the model in one estimate, a backward pass as two."""
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
    norm_variance: float  # of ‖ĝ‖, as printed in the thesis

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


def spread_at_batch(
    watched: MeasuredEstimator,
    module: Trainable,
    batch: RowBatch,
    rng: Rng,
    n: int,
    chosen: list[bool],
) -> Spread:
    """Spread of n estimates at one batch, due only to the noise of the draws."""
    return measure_spread(watched.estimate(module, batch, rng, chosen)[0] for _ in range(n))


def time_in_turn(
    watched: list[MeasuredEstimator], module: Trainable, batch: RowBatch, rngs: list[Rng], n: int
) -> list[list[float]]:
    """Seconds of n estimates of each estimator [K, n], one of each in turn.

    In turn, because the load of a machine changes: estimates of one round share it, so that
    the ratio of two times within a round does not depend on it.
    """
    chosen = [p.requires_grad for p in module.parameters()]
    rounds = [
        [
            one.estimate(module, batch, rng, chosen)[1]
            for one, rng in zip(watched, rngs, strict=True)
        ]
        for _ in range(n)
    ]
    return [list(times) for times in zip(*rounds, strict=True)]


def time_ratios(seconds: list[list[float]]) -> list[float]:
    """Median over rounds of each estimator's time over the first estimator's in that round."""
    return [
        statistics.median(t / t0 for t, t0 in zip(times, seconds[0], strict=True))
        for times in seconds
    ]


@dataclass(frozen=True)
class Over:
    """Variance in all and bias, from two estimates at each of M fresh batches."""

    total: float  # Tr Cov[ĝ], of the noise and of the choice of rows
    minibatch_share: float  # Tr Cov_B[E[ĝ|B]] / Tr Cov[ĝ]
    # ‖E ĝ − E ĝ₀‖², ĝ₀ of the first estimator: an unbiased estimate, which may be below 0
    bias: float
    bias_p: float  # probability of as large a value where both have one mean
    bias_z: float  # the same as a quantile of the standard normal law; 0 for p above ½


def spread_over_batches(
    watched: list[MeasuredEstimator],
    module: Trainable,
    batches: Iterable[RowBatch],
    rngs: list[Rng],
    chosen: list[bool],
) -> list[Over]:
    """Variance share of the choice of rows, and test for the same mean as the first estimator.

    Two estimates at a batch are independent given it: their mean product less ‖E ĝ‖² is the
    trace of Cov_B, and half their squared difference is the trace of the noise.  d_B, the
    mean of the two less the mean of the first estimator's two, is independent from batch to
    batch: products of d at two batches have the mean ‖bias‖² for any number of parameters.
    Each of at most ``GROUPS`` groups of batches has its mean over all pairs, and a one-sided
    t-test asks if the mean over groups is above 0.
    """
    batches = list(batches)
    size = len(batches) // min(GROUPS, len(batches) // 2)
    n = 0
    product, within, squares = ([0.0] * len(watched) for _ in range(3))
    total: list[Tensor] = [torch.zeros(()) for _ in watched]
    sums: list[Tensor] = [torch.zeros(()) for _ in watched]  # Σ d of the group
    norms = [0.0] * len(watched)  # Σ ‖d‖² of the group
    together: list[list[float]] = [[] for _ in watched]
    for batch in batches:
        n += 1
        means = []
        for k, (one_of, rng) in enumerate(zip(watched, rngs, strict=True)):
            one, two = (one_of.estimate(module, batch, rng, chosen)[0] for _ in range(2))
            mean = (one + two) / 2
            product[k] += float(one @ two)
            within[k] += 0.5 * float((one - two).square().sum())
            squares[k] += float(mean.square().sum())
            total[k] = total[k] + mean
            means.append(mean)
        for k, mean in enumerate(means):
            apart = mean - means[0]
            sums[k] = sums[k] + apart
            norms[k] += float(apart.square().sum())
            if n % size == 0:
                pairs = float(sums[k].square().sum()) - norms[k]
                together[k].append(pairs / (size * (size - 1)))
                sums[k], norms[k] = torch.zeros(()), 0.0
    results = []
    for k in range(len(watched)):
        # ‖E ĝ‖² = (‖Σ_B ḡ_B‖² − Σ_B ‖ḡ_B‖²)/(M(M − 1)): only products of different batches.
        between = product[k] / n - (float(total[k].square().sum()) - squares[k]) / (n * (n - 1))
        total_trace = between + within[k] / n
        results.append(
            Over(
                total_trace,
                between / total_trace if total_trace > 0 else math.nan,
                *_test_mean(together[k]),
            )
        )
    return results


def _test_mean(values: list[float]) -> tuple[float, float, float]:
    """Their mean, the p-value of a one-sided t-test that it is 0, and p as a normal quantile."""
    from scipy.stats import norm, t

    mean = statistics.mean(values)
    sd = statistics.stdev(values)
    if sd == 0:
        return mean, float(mean <= 0), math.inf if mean > 0 else 0.0
    p = float(t.sf(mean / sd * math.sqrt(len(values)), len(values) - 1))
    return mean, p, max(0.0, float(norm.isf(p)))
