"""Extended Rauch-Tung-Striebel smoother for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import AdditiveGaussian
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.gaussian_filtering.extended_kalman import extended_step
from components.series.gaussian_filtering.gaussian_filtering import start
from components.series.gaussian_filtering.linearisation import transition_tangent
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence
from components.series.smoothing.rauch_tung_striebel import (
    Forward,
    GaussianSmoother,
    extend_forward,
    smooth_series,
)


@register("inference", "extended_rts_smoother")
class ExtendedRTSSmoother(GaussianSmoother[AdditiveGaussian]):
    """Extended Rauch-Tung-Striebel smoother: a Gaussian for each time given all observations, the
    model linearised.

    The extended Kalman filter, a time a step; then, from the last time seen to the first, with F =
    ∂f_{t+1}(m_t)/∂x,

        P⁻ = F P_t Fᵀ + Q,  G = P_t Fᵀ (P⁻)⁻¹,  m^s_t = m_t + G(m^s_{t+1} − f_{t+1}(m_t)),  P^s_t = P_t + G(P^s_{t+1} − P⁻)Gᵀ

    Means are [R, dx], covariances [R, dx, dx].  On a linear model it is the Rauch-Tung-Striebel
    smoother.  Raises NumericalError when S or P⁻ cannot be factorised, ConfigMismatchError when the
    model observes another number of coordinates.

    Source: Särkkä (2013), algorithm 9.1."""

    requires = Requirements(capabilities={"additive_gaussian"})
    provides = {"smoothed_states"}

    def init(
        self, model: AdditiveGaussian, problem: Sequence, rng: Rng
    ) -> Forward[AdditiveGaussian]:
        return Forward(filter=start(model, problem, apart=True))

    def step(
        self, state: Forward[AdditiveGaussian], batch: Observation, rng: Rng
    ) -> tuple[Forward[AdditiveGaussian], Info]:
        return extend_forward(state, *extended_step(state.filter, batch))

    def posterior(self, state: Forward[AdditiveGaussian]) -> SmoothedSeries:
        return smooth_series(state, transition_tangent)
