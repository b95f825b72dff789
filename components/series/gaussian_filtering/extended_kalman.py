"""Extended Kalman filter for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import AdditiveGaussian
from components.contracts.requirements import Requirements
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    GaussianFilter,
    Gaussians,
    GaussianStep,
    finish_filter_step,
    gain,
)
from components.series.gaussian_filtering.linearisation import predict


@register("inference", "extended_kalman")
class ExtendedKalman(GaussianFilter[AdditiveGaussian]):
    """Extended Kalman filter: a Gaussian per time step, with the model linearised at its mean.

    m⁻ = f_t(m), P⁻ = F P Fᵀ + Q, F = ∂f_t(m)/∂x;  H = ∂h_t(m⁻)/∂x, S = H P⁻ Hᵀ + Σ, K = P⁻
    Hᵀ S⁻¹; m = m⁻ + K(y − h_t(m⁻)), P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.  Means are [R, dx],
    covariances [R, dx, dx].  Jacobians come from automatic differentiation.  For a linear model it
    is the Kalman filter; otherwise the log normaliser belongs to the linearised model and is not an
    evidence.  If an observation is missing, m = m⁻ and P = P⁻.

    Raises NumericalError if S cannot be factorised.

    Source: Särkkä (2013), algorithm 5.4.
    """

    requires = Requirements(capabilities={AdditiveGaussian})

    def step(
        self, state: Gaussians[AdditiveGaussian], batch: Observation, rng: Rng
    ) -> GaussianStep[AdditiveGaussian]:
        prior_m, prior_P, predicted, H = predict(state, batch)
        deviations = Deviations(None, H, prior_P)
        filter_gain = gain(state.P, prior_P, deviations, state.model.Sigma, batch.t)
        return finish_filter_step(state, batch, prior_m, predicted, filter_gain)
