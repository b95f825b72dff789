"""Base classes of particle filters, and of methods that contain one.

They define the common keys, the initial state and the result.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Generic

import torch
from pydantic import BaseModel, PositiveInt, field_validator

from components.contracts.capabilities import PowerIntegral, StateSpace
from components.contracts.posteriors import FilteredStates
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, ZeroToOne
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.particles.resampling import Scheme
from components.series.filtering.generalised_particle_filter import (
    FilterState,
    FilterStep,
    M,
    Potential,
    Resampling,
    advance,
    start,
)
from components.series.filtering.losses import log_beta_likelihood, log_likelihood
from components.series.posteriors.filtered import Filtered
from components.series.sequence import Sequence


class ParticleFilter(Inference[M, Sequence, Observation, FilterState[M]], Generic[M]):
    """Particle filter with N particles for each of R replicates; subclasses move and weight
    them."""

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="observation",
        capabilities={StateSpace},
    )
    provides = {FilteredStates}
    particles: PositiveInt
    resampling: Scheme

    def weighs_by_likelihood(self) -> bool:
        """True if the normaliser is the evidence."""
        return True

    def init(self, model: M, problem: Sequence, rng: Rng) -> FilterState[M]:
        return start(model, problem, self.particles, rng, evidence=self.weighs_by_likelihood())

    def potential(self, model: M, t: int, generator: torch.Generator) -> Potential[M]:
        """Log potential log G_t of the weights: the log-likelihood."""
        return log_likelihood

    def posterior(self, state: FilterState[M]) -> Filtered:
        return state.filtered.current_posterior()


class BetaLoss(ParticleFilter[Any]):
    """Particle filter with the likelihood of the β-divergence as potential."""

    requires = Requirements(capabilities={PowerIntegral})
    beta: ZeroToOne

    def weighs_by_likelihood(self) -> bool:
        return self.beta == 0

    def potential(self, model: Any, t: int, generator: torch.Generator) -> Potential[Any]:
        return partial(log_beta_likelihood, beta=self.beta)


class AdaptiveFilter(ParticleFilter[M], Generic[M]):
    """Filter that moves particles by the transition, weights them by the potential, and resamples
    if the effective sample size is small."""

    resample_below: ZeroToOne

    def resampler(self) -> Resampling:
        return Resampling(self.resampling, self.resample_below)

    def step(self, state: FilterState[M], batch: Observation, rng: Rng) -> FilterStep[M]:
        potential = self.potential(state.model, batch.t, rng.noise)
        return advance(state, batch, rng, potential, self.resampler())


class FilterBasedMethod(BaseModel):
    """A method that contains a particle filter."""

    filter: Inference

    @field_validator("filter")
    @classmethod
    def _weighs_particles(cls, value: Inference) -> Inference:
        if not isinstance(value, ParticleFilter):
            raise ValueError(
                f"filter: {value.name} is not a particle filter; choose bootstrap_filter, beta_bootstrap_filter, …"
            )
        return value

    def asked_by_keys(self) -> dict[type, str]:
        return dict.fromkeys(self.filter.required_capabilities("sequence"), "filter")
