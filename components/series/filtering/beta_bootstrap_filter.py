"""The bootstrap particle filter made robust by the β-divergence."""

from __future__ import annotations

from functools import partial

from components.contracts.capabilities import PowerIntegral
from components.contracts.requirements import Requirements
from components.contracts.roles import Info, ZeroToOne
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.filtering.generalised_particle_filter import FilterState, advance
from components.series.filtering.losses import log_beta_likelihood
from components.series.filtering.particle_filter import AdaptiveFilter


@register("inference", "beta_bootstrap_filter")
class BetaBootstrapFilter(AdaptiveFilter[PowerIntegral]):
    """Bootstrap particle filter with the outlier-bounding β-divergence likelihood.

    x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} G^β(y_t | x̄_t), G^β(y|x) = exp(g(y|x)^β/β − ∫
    g(y'|x)^{β+1} dy'/(β+1)), then resampling as in the bootstrap filter, which is the case
    β = 0.  Particles are [R, N, dx].  The log normaliser is the one of the generalised
    posterior, not an evidence.  A missing observation leaves the weights unchanged.  Raises
    NumericalError if all weights of a replicate are zero.

    Source: Boustati (2021), eq. (6.6) and Algorithm 7.
    """

    requires = Requirements(capabilities={"state_space", "power_integral"})
    beta: ZeroToOne

    def weighs_by_likelihood(self) -> bool:
        return self.beta == 0

    def step(
        self, state: FilterState[PowerIntegral], batch: Observation, rng: Rng
    ) -> tuple[FilterState[PowerIntegral], Info]:
        return advance(
            state, batch, rng, partial(log_beta_likelihood, beta=self.beta), self.resampler()
        )
