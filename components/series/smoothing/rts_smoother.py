"""Rauch-Tung-Striebel smoother for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import LinearGaussian
from components.contracts.posteriors import SmoothedSignal, SmoothedStates
from components.registry import register
from components.series.gaussian_filtering.kalman import Kalman
from components.series.smoothing.rauch_tung_striebel import GaussianSmoother


@register("inference", "rts_smoother")
class RTSSmoother(GaussianSmoother[LinearGaussian], Kalman):
    """Rauch-Tung-Striebel smoother: the exact smoothing distributions of a linear Gaussian
    state-space model.

    The Kalman filter runs first, one time per step; then, from the last observed time to the first,

        m⁻ = A m_t, P⁻ = A P_t Aᵀ + Q,  G = P_t Aᵀ (P⁻)⁻¹,  m^s_t = m_t + G(m^s_{t+1} − m⁻),  P^s_t = P_t + G(P^s_{t+1} − P⁻)Gᵀ

    Means are [R, dx], covariances [dx, dx], or [R, dx, dx] if replicates miss different
    observations.  Results are conditioned on all observations so far.  Raises NumericalError if S
    or P⁻ cannot be factorised.

    Source: Rauch, Tung and Striebel (1965); Särkkä (2013), theorem 8.2."""

    provides = {SmoothedStates, SmoothedSignal}
