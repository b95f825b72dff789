"""Base classes of particle filters, and of methods that hold one.

They define the common keys, the initial state and the result.
"""

from __future__ import annotations

from typing import Generic

from pydantic import BaseModel, PositiveInt, field_validator

from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, ZeroToOne
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.particles.resampling import Scheme
from components.series.filtering.generalised_particle_filter import (
    FilterState,
    M,
    Resampling,
    start,
)
from components.series.posteriors.filtered import Filtered
from components.series.sequence import Sequence


class ParticleFilter(Inference[M, Sequence, Observation, FilterState[M]], Generic[M]):
    """N particles for each of R replicates, which a subclass moves and weighs."""

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="observation",
        capabilities={"state_space"},
    )
    provides = {"filtered_states"}
    particles: PositiveInt
    resampling: Scheme

    def weighs_by_likelihood(self) -> bool:
        """True if the normaliser is the evidence."""
        return True

    def init(self, model: M, problem: Sequence, rng: Rng) -> FilterState[M]:
        return start(model, problem, self.particles, rng, evidence=self.weighs_by_likelihood())

    def posterior(self, state: FilterState[M]) -> Filtered:
        return state.filtered.current_posterior()


class AdaptiveFilter(ParticleFilter[M], Generic[M]):
    """One that resamples after it has weighed, where too few particles carry the weight."""

    resample_below: ZeroToOne

    def resampler(self) -> Resampling:
        return Resampling(self.resampling, self.resample_below)


class FilterBasedMethod(BaseModel):
    """A method that runs a particle filter inside it."""

    filter: Inference

    @field_validator("filter")
    @classmethod
    def _weighs_particles(cls, value: Inference) -> Inference:
        if not isinstance(value, ParticleFilter):
            raise ValueError(
                f"filter: {value.name} is no particle filter; choose bootstrap_filter, beta_bootstrap_filter, …"
            )
        return value

    def asked_by_keys(self) -> dict[str, str]:
        return dict.fromkeys(self.filter.required_capabilities("sequence"), "filter")
