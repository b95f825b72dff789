"""The guided particle filter."""

from __future__ import annotations

from components.contracts.capabilities import StateSpace
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.filtering.generalised_particle_filter import FilterState, FilterStep
from components.series.filtering.guided import GUIDE_REQUIREMENTS, Guide, advance_guided
from components.series.filtering.particle_filter import AdaptiveFilter


@register("inference", "guided_filter")
class GuidedFilter(AdaptiveFilter[StateSpace]):
    """Guided particle filter: particles move by a proposal that depends on the observation.

    x̄_t ~ q_t(· | x_{t−1}, y_t), w_t ∝ w_{t−1} g_t f_t / q_t, then resampling as in the
    bootstrap filter.  The optimal proposal is p(x_t | x_{t−1}, y_t), with weights p(y_t |
    x_{t−1}); the linearised one is the Gaussian that is optimal for the linearised h.
    Particles are [R, N, dx]; the normaliser is an unbiased estimate of the evidence.
    Predictions are means of h over draws from f.  Both proposals follow the likelihood, and so are
    drawn to outliers; for losses that are robust to them see ``generalised_filter``.  A missing
    observation leaves the weights unchanged.  Raises NumericalError if all weights of a replicate
    are zero.

    Source: Doucet, Godsill & Andrieu (2000); Boustati (2021), Algorithm 6 with G = g.
    """

    proposal: Guide

    def asked_by_keys(self) -> dict[type, str]:
        return dict.fromkeys(GUIDE_REQUIREMENTS[self.proposal], "proposal")

    def step(
        self, state: FilterState[StateSpace], batch: Observation, rng: Rng
    ) -> FilterStep[StateSpace]:
        potential = (
            None if self.proposal == "optimal" else self.potential(state.model, batch.t, rng.noise)
        )
        return advance_guided(state, batch, rng, potential, self.proposal, self.resampler())
