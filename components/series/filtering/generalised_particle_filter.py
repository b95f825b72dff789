"""Generalised particle filter, the common code of all particle filters.

An inference defines how particles move and how they are weighted afterwards
(``PropagatedParticles``); ``settle`` normalises the weights, summarises and resamples.  ``advance``
is the filter that moves by the transition and weighs by a potential G_t(y_t | x_t): with the
likelihood as G it is the bootstrap filter.

It runs R replicates of N particles in parallel.

Source: Boustati (2021), Algorithm 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.maths.particles.kernels import kernels_of
from components.maths.particles.order_statistics import quantiles
from components.maths.particles.resampling import Scheme, offspring, resample_particles
from components.series.posteriors.filtered import Filtering
from components.series.sequence import Sequence

M = TypeVar("M", bound=StateSpace)
# model, (t, y [R, dy]), x [R, N, dx] -> log G [R, N]
Potential = Callable[[M, Observation, Tensor], Tensor]


class WeightedParticles(NamedTuple):
    """The weighted particles of time t before resampling, for smoothers and figures."""

    x: Tensor  # [R, N, dx]
    log_w: Tensor  # normalised [R, N]


class PropagatedParticles(NamedTuple):
    """The particles of time t, their weights, and the prediction of y_t from earlier
    observations."""

    x: Tensor  # [R, N, dx]
    log_w: Tensor  # unnormalised; their sum is the factor of time t of the normaliser [R, N]
    predicted: Tensor  # E[y_t | y_1:t−1] [R, dy]


class Resampling(NamedTuple):
    """Resampling scheme and its threshold: the effective sample size as a share of the number of
    particles."""

    scheme: Scheme
    below: float


@dataclass(kw_only=True)
class FilterState(Generic[M]):
    """N weighted particles for each of R replicates, and the results so far."""

    model: M = not_checkpointed()
    particles: Tensor  # [R, N, dx]
    log_w: Tensor  # normalised [R, N]
    filtered: Filtering
    # None before the first step after the run began or resumed
    weighted: WeightedParticles | None = not_checkpointed()


FilterStep = tuple[FilterState[M], Info]


def start(model: M, problem: Sequence, n: int, rng: Rng, evidence: bool = True) -> FilterState[M]:
    """N equally weighted draws of x_0 for each replicate; ``evidence`` means that the potential is
    the likelihood.
    """
    x = model.init((problem.replicates, n), rng.init)  # [R, N, dx]
    log_w = x.new_full(x.shape[:2], -math.log(n))
    filtered = Filtering(
        log_normaliser=problem.observations.new_zeros(problem.replicates), evidence=evidence
    )
    return FilterState(model=model, particles=x, log_w=log_w, filtered=filtered, weighted=None)


def advance(
    state: FilterState[M],
    batch: Observation,
    rng: Rng,
    potential: Potential[M],
    resampling: Resampling,
) -> FilterStep[M]:
    """x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} G_t(y_t | x̄_t); predictions are Σ_n w_{t−1}^n E[y_t |
    x̄_t^n].

    Raises NumericalError if all weights of a replicate are zero or one is NaN."""
    x = state.model.transition(state.particles, batch.t, rng.noise)  # Sample  # [R, N, dx]
    predicted = expectation(state.log_w, state.model.observation_mean(x, batch.t))  # [R, dy]
    observation = stand_in(batch, predicted)
    log_w = state.log_w + zero_where_missing(
        batch, potential(state.model, observation, x)
    )  # Weight  # [R, N]
    return settle(state, batch, rng, PropagatedParticles(x, log_w, predicted), resampling)


def expectation(log_w: Tensor, values: Tensor) -> Tensor:
    """Σ_n w_n v_n of values [R, N, d] under normalised weights [R, N]; [R, d]."""
    if not log_w.requires_grad:
        low, high = log_w.aminmax()
        if low == high:  # as after every resampling: no exponential
            return values.mean(1)
    return (log_w.exp().unsqueeze(1) @ values).squeeze(1)


def stand_in(batch: Observation, predicted: Tensor) -> Observation:
    """The observation with a value that a model can evaluate in place of NaN.

    Results that depend on it must not be used.
    """
    if batch.missing is None:
        return batch
    return batch._replace(
        y=torch.where(batch.missing.unsqueeze(1), predicted, batch.y), missing=None
    )


def zero_where_missing(batch: Observation, log_g: Tensor) -> Tensor:
    """Log potentials [R, N], 0 in replicates without an observation."""
    return log_g if batch.missing is None else torch.where(batch.missing.unsqueeze(1), 0.0, log_g)


def settle(
    state: FilterState[M],
    batch: Observation,
    rng: Rng,
    moved: PropagatedParticles,
    resampling: Resampling,
) -> FilterStep[M]:
    """Normalise, summarise, and resample if the ESS is at most ``resampling.below`` · N.

    ESS is the effective sample size.  Mean and variance are computed from the weighted
    particles: the expectation, given the particles, of the resampled mean that (D.6) takes.
    Quantiles are computed from resampled particles, as in (D.7).  Weights are normalised in
    float64 for any dtype of the states, because the logarithm of a sum of 10⁶ terms is a
    factor of the evidence.

    Raises NumericalError if all weights of a replicate are zero or one is NaN.
    """
    x = moved.x
    log_w = moved.log_w
    predicted = moved.predicted
    n = moved.x.shape[1]
    weights = normalise_log_weights(log_w, batch)
    mean, variance = moments(x, weights)
    log_normaliser = weights.log_sum
    log_w = log_w.to(x) - log_normaliser.to(x).unsqueeze(1)

    # Resampling only for quantiles needs no independence.
    scheme = "systematic" if resampling.below == 0 else resampling.scheme
    counts = offspring(scheme, weights.w, rng.noise)  # Resample  # [R, N]
    particles = resample_particles(x, counts)
    lower, upper = quantiles(particles, (0.05, 0.95))  # [R, dx]
    equal = torch.full_like(log_w, -math.log(n))
    # stop-gradient estimator: the ancestor's w divided by its detached value is 1 and keeps its
    # gradient
    if log_w.requires_grad:
        parent_log_w = resample_particles(log_w.unsqueeze(2), counts).squeeze(2)
        equal = equal + (parent_log_w - parent_log_w.detach())
    if resampling.below == 0:
        particles = x
        equal = log_w  # resampled only for the quantiles
    elif resampling.below < 1:
        stay = (weights.ess > resampling.below * n).unsqueeze(1)  # [R, 1]
        particles = torch.where(stay.unsqueeze(2), x, particles)
        equal = torch.where(stay, log_w, equal)

    filtered = state.filtered
    info = {"log_normaliser": log_normaliser.to(x), "ess": weights.ess.to(x)}
    summaries = {"mean": mean, "variance": variance, "lower": lower, "upper": upper}
    filtered.add(batch.t, **summaries, predicted=predicted, ess=info["ess"])
    filtered.log_normaliser += log_normaliser.to(filtered.log_normaliser)
    return replace(
        state, particles=particles, log_w=equal, weighted=WeightedParticles(x, log_w)
    ), info


class Weights(NamedTuple):
    """Weights, possibly unnormalised, in float64, with their sums and effective sample size."""

    w: Tensor  # [R, N]
    sums: Tensor  # of the weights and of their squares [R, ≥ 2]
    log_sum: Tensor  # of the weights before division by their maximum [R]
    ess: Tensor  # effective sample size, (Σ_n w_n)² / Σ_n w_n² [R]


def normalise_log_weights(log_w: Tensor, batch: Observation) -> Weights:
    """Exponentiate log weights [R, N].

    Raises NumericalError, which names the observation, if their sum is zero or NaN."""
    w, sums = kernels_of(log_w).weigh(log_w)
    log_sum = sums[:, 2]
    if (log_sum - log_sum == 0).all():  # finite: inf − inf and NaN − NaN differ from 0
        return Weights(w, sums, log_sum, sums[:, 3])
    replicates = (~torch.isfinite(log_sum)).nonzero().flatten().tolist()
    y = ", ".join(f"{value:.4g}" for value in batch.y[replicates[0]].tolist())
    raise NumericalError(
        f"particle weights are all zero or NaN at t = {batch.t} in replicates {replicates}; y = ({y}) in the first",
        "raise inference.particles, or use a filter that is robust to outliers (inference=beta_bootstrap_filter)",
    )


def moments(x: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Mean and variance [R, dx] of weighted particles x [R, N, dx]."""
    return kernels_of(x, weights.w).moments(x, weights.w, weights.sums)
