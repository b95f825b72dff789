"""The auxiliary particle filter made robust by the β-divergence."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from components.contracts.capabilities import BoundedObservation, PowerIntegral, TransitionMean
from components.contracts.requirements import Requirements
from components.contracts.roles import Info, ZeroToOne
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.filtering.look_ahead import LookAheadFilter
from components.series.filtering.losses import log_beta_bound, log_beta_likelihood


@register("inference", "beta_auxiliary_filter")
class BetaAuxiliaryFilter(LookAheadFilter[TransitionMean]):
    """Auxiliary particle filter with the likelihood of the β-divergence in both of its stages.

    k_t ~ w_{t−1}^k Ǧ_t^β(x_{t−1}^k), x_t ~ f_t(· | x_{t−1}^{k_t}), w_t ∝ G_t^β(y_t | x_t) /
    Ǧ_t^β(x_{t−1}^{k_t}) with Ǧ_t^β(x_{t−1}) = G_t^β(y_t | μ_t(x_{t−1})) + c_t and c_t =
    ``stabiliser`` · sup G_t^β, which follows from sup g; if the integral of (6.6) varies
    with x, its smallest value over the evaluated points is used.  Particles are [R, N, dx];
    β = 0 is the auxiliary filter.  The log normaliser is the one of the generalised
    posterior, not an evidence.  A missing observation leaves the weights of the particles
    unchanged.  Raises NumericalError if all weights of a replicate are zero.

    Source: Boustati (2021), eq. (6.6) and Algorithm 8.
    """

    requires = Requirements(
        capabilities={"state_space", "transition_mean", "power_integral"},
    )
    beta: ZeroToOne

    def weighs_by_likelihood(self) -> bool:
        return self.beta == 0

    def step(
        self, state: FilterState[TransitionMean], batch: Observation, rng: Rng
    ) -> tuple[FilterState[TransitionMean], Info]:
        model = state.model
        assert isinstance(model, PowerIntegral)  # which the filter needs
        beta = self.beta

        def bound_log_weights(seen: Observation, mu: Tensor) -> Tensor:
            assert isinstance(model, BoundedObservation)
            integral = model.log_power_integral(mu, seen.t, 1 + beta)  # [R, N] or []
            smallest = integral.amin(1, keepdim=True) if integral.dim() else integral
            return log_beta_bound(model.log_observation_bound(seen.t), smallest, beta)

        return self.step_with_look_ahead(
            state, batch, rng, partial(log_beta_likelihood, beta=beta), bound_log_weights
        )
