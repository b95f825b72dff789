"""Rauch-Tung-Striebel smoother for R observation sequences in parallel."""

from __future__ import annotations

from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import propagate_mean
from components.series.gaussian_filtering.kalman import kalman_start, kalman_step
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence
from components.series.smoothing.rauch_tung_striebel import (
    Forward,
    GaussianSmoother,
    extend_forward,
    smooth_series,
)


def _linear_transition(model: LinearGaussian, x: Tensor, t: int) -> tuple[Tensor, Tensor]:
    return propagate_mean(model, x), model.A


@register("inference", "rts_smoother")
class RTSSmoother(GaussianSmoother[LinearGaussian]):
    """Rauch-Tung-Striebel smoother: the exact smoothing distributions of a linear Gaussian
    state-space model.

    The Kalman filter, a time a step; then, from the last time seen to the first,

        m⁻ = A m_t, P⁻ = A P_t Aᵀ + Q,  G = P_t Aᵀ (P⁻)⁻¹,  m^s_t = m_t + G(m^s_{t+1} − m⁻),  P^s_t = P_t + G(P^s_{t+1} − P⁻)Gᵀ

    Means are [R, dx], covariances [dx, dx], or [R, dx, dx] where replicates miss different
    observations.  What it hands back is given all observations so far.  Raises NumericalError when
    S or P⁻ cannot be factorised, ConfigMismatchError when the model observes another number of
    coordinates.

    Source: Rauch, Tung and Striebel (1965); Särkkä (2013), theorem 8.2."""

    requires = Requirements(capabilities={"linear_gaussian"})
    provides = {"smoothed_states", "smoothed_signal"}

    def init(self, model: LinearGaussian, problem: Sequence, rng: Rng) -> Forward[LinearGaussian]:
        return Forward(filter=kalman_start(model, problem))

    def step(
        self, state: Forward[LinearGaussian], batch: Observation, rng: Rng
    ) -> tuple[Forward[LinearGaussian], Info]:
        return extend_forward(state, *kalman_step(state.filter, batch))

    def posterior(self, state: Forward[LinearGaussian]) -> SmoothedSeries:
        return smooth_series(state, _linear_transition)
