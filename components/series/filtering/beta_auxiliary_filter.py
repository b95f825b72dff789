"""The auxiliary particle filter made robust by the β-divergence."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.contracts.capabilities import PowerIntegral, TransitionMean
from components.contracts.requirements import Requirements
from components.registry import register
from components.series.filtering.look_ahead import LookAheadFilter
from components.series.filtering.losses import log_beta_bound
from components.series.filtering.particle_filter import BetaLoss


@register("inference", "beta_auxiliary_filter")
class BetaAuxiliaryFilter(BetaLoss, LookAheadFilter[TransitionMean]):
    """Auxiliary particle filter with the likelihood of the β-divergence in both of its stages.

    k_t ~ w_{t−1}^k Ǧ_t^β(x_{t−1}^k), x_t ~ f_t(· | x_{t−1}^{k_t}), w_t ∝ G_t^β(y_t | x_t) /
    Ǧ_t^β(x_{t−1}^{k_t}) with Ǧ_t^β(x_{t−1}) = G_t^β(y_t | μ_t(x_{t−1})) + c_t and c_t =
    ``stabiliser`` · sup G_t^β, which follows from sup g; if the integral of (6.6) varies
    with x, its smallest value over the evaluated points is used.  Particles are [R, N, dx];
    β = 0 is the auxiliary filter.  The log normaliser belongs to the generalised posterior and is
    not an evidence.  A missing observation leaves the weights of the particles unchanged.  Raises
    NumericalError if all weights of a replicate are zero.

    Source: Boustati (2021), eq. (6.6) and Algorithm 8.
    """

    requires = Requirements(
        capabilities={TransitionMean, PowerIntegral},
    )

    def bound(self, model: Any, mu: Tensor, t: int) -> Tensor:
        integral = model.log_power_integral(mu, t, 1 + self.beta)  # [R, N] or []
        smallest = integral.amin(1, keepdim=True) if integral.dim() else integral
        return log_beta_bound(model.log_observation_bound(t), smallest, self.beta)
