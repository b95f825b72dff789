"""The generalised particle filter with the transition as proposal, for R replicates of N particles at once.

An inference chooses the potential G_t(y_t | x_t); the likelihood gives the bootstrap filter.

Source: Boustati (2021), Algorithm 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.maths.order_statistics import quantiles
from components.maths.resampling import effective_sample_size, systematic_ancestors
from components.posteriors.filtered import Filtering
from components.problems.sequence import Sequence
from components.trouble import NumericalTrouble

M = TypeVar("M", bound=StateSpace)
Potential = Callable[[M, Observation, Tensor], Tensor]  # model, (t, y [R, dy]), x [R, N, dx] -> log G [R, N]


@dataclass(kw_only=True)
class FilterState(Generic[M]):
    """N weighted particles of each of R replicates, and what has been filtered."""

    model: M = rebuilt()
    particles: Tensor  # [R, N, dx]
    log_w: Tensor  # normalised [R, N]
    filtered: Filtering


def start(model: M, problem: Sequence, n: int, rng: Rng, evidence: bool = True) -> FilterState[M]:
    """N equally weighted draws of x_0 for each replicate; ``evidence``: the potential will be the likelihood."""
    x = model.init((problem.replicates, n), rng.init)  # [R, N, dx]
    log_w = torch.full(x.shape[:2], -math.log(n), device=x.device, dtype=x.dtype)
    filtered = Filtering(log_normaliser=problem.observations.new_zeros(problem.replicates), evidence=evidence)
    return FilterState(model=model, particles=x, log_w=log_w, filtered=filtered)


def advance(
    state: FilterState[M], batch: Observation, rng: Rng, potential: Potential[M], resample_below: float
) -> tuple[FilterState[M], Info]:
    """Sample, weight, summarise, and resample where the effective sample size is at most ``resample_below`` · N.

    Mean and variance are those of the weighted particles: the expectation, given the particles, of the resampled mean that
    (D.6) takes.  Quantiles are those of resampled particles, as in (D.7).  Where nothing was seen the potential is 1.

    Raises NumericalTrouble when all weights of a replicate are zero or one is not a number."""
    model, filtered, log_w = state.model, state.filtered, state.log_w
    n = log_w.shape[1]
    x = model.transition(state.particles, batch.t, rng.noise)  # Sample  # [R, N, dx]
    prior_w = log_w.exp().unsqueeze(1)
    predicted = (prior_w @ model.observation_mean(x, batch.t)).squeeze(1)  # [R, dy]

    log_w = log_w + _log_potential(potential, model, batch, x, predicted)  # Weight  # [R, N]
    log_normaliser = torch.logsumexp(log_w, 1)  # [R]
    if not torch.isfinite(log_normaliser).all():
        lost = (~torch.isfinite(log_normaliser)).nonzero().flatten().tolist()
        raise NumericalTrouble(
            f"particle weights all zero or not a number at t = {batch.t} in replicates {lost}",
            "raise inference.particles",
        )
    log_w = log_w - log_normaliser.unsqueeze(1)
    w = log_w.exp()
    ess = effective_sample_size(w)  # [R]
    mean = w.unsqueeze(1) @ x  # [R, 1, dx]
    variance = w.unsqueeze(1) @ (x - mean).square()  # centred first: positions are 10³ times their spread

    rows = systematic_ancestors(w, rng.noise)  # Resample  # [R·N]
    resampled = x.flatten(0, 1).index_select(0, rows).view_as(x)
    lower, upper = quantiles(resampled, (0.05, 0.95))  # [R, dx]
    equal = torch.full_like(log_w, -math.log(n))
    if resample_below < 1:
        stay = (ess > resample_below * n).unsqueeze(1)  # [R, 1]
        resampled, equal = torch.where(stay.unsqueeze(2), x, resampled), torch.where(stay, log_w, equal)

    summaries = {"mean": mean.squeeze(1), "variance": variance.squeeze(1), "lower": lower, "upper": upper}
    filtered.add(batch.t, **summaries, predicted=predicted)
    filtered.log_normaliser += log_normaliser
    return replace(state, particles=resampled, log_w=equal), {"log_normaliser": log_normaliser, "ess": ess}


def _log_potential(potential: Potential[M], model: M, batch: Observation, x: Tensor, predicted: Tensor) -> Tensor:
    """log G of every particle [R, N], 0 in replicates that saw nothing."""
    if batch.missing is None:
        return potential(model, batch, x)
    # A stand-in that a model can evaluate, in place of NaN; whatever comes of it is not used.
    seen = batch._replace(y=torch.where(batch.missing.unsqueeze(1), predicted, batch.y), missing=None)
    return torch.where(batch.missing.unsqueeze(1), 0.0, potential(model, seen, x))
