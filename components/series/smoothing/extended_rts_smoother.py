"""Extended Rauch-Tung-Striebel smoother for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import AdditiveGaussian
from components.contracts.posteriors import SmoothedStates
from components.registry import register
from components.series.gaussian_filtering.extended_kalman import ExtendedKalman
from components.series.smoothing.rauch_tung_striebel import GaussianSmoother


@register("inference", "extended_rts_smoother")
class ExtendedRTSSmoother(GaussianSmoother[AdditiveGaussian], ExtendedKalman):
    """Extended Rauch-Tung-Striebel smoother: a Gaussian for each time given all observations, with
    the model linearised.

    The extended Kalman filter runs first, one time per step; then, from the last observed time to
    the first, with F = ∂f_{t+1}(m_t)/∂x,

        P⁻ = F P_t Fᵀ + Q,  G = P_t Fᵀ (P⁻)⁻¹,  m^s_t = m_t + G(m^s_{t+1} − f_{t+1}(m_t)),  P^s_t = P_t + G(P^s_{t+1} − P⁻)Gᵀ

    Means are [R, dx], covariances [R, dx, dx].  For a linear model it is the Rauch-Tung-Striebel
    smoother.  Raises NumericalError if S or P⁻ cannot be factorised.

    Source: Särkkä (2013), algorithm 9.1."""

    provides = {SmoothedStates}
