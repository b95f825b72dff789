"""Extended Kalman filter for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import AdditiveGaussian, LinearGaussian
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    GaussianFilter,
    Gaussians,
    finish_filter_step,
    gain,
    innovation,
    start,
)
from components.series.gaussian_filtering.linearisation import predict
from components.series.sequence import Sequence


def extended_step(
    state: Gaussians[AdditiveGaussian], batch: Observation
) -> tuple[Gaussians[AdditiveGaussian], Info]:
    """The Gaussian of the next time, by first-order expansions of f and h."""
    prior_m, prior_P, predicted, H = predict(state, batch)
    filter_gain = gain(state.P, prior_P, Deviations(None, H, prior_P), state.model.Sigma, batch.t)
    return finish_filter_step(
        state, batch, prior_m, predicted, filter_gain, innovation(batch, predicted)
    )


@register("inference", "extended_kalman")
class ExtendedKalman(GaussianFilter[AdditiveGaussian]):
    """Extended Kalman filter: a Gaussian per time step, with the model linearised at its mean.

    m⁻ = f_t(m), P⁻ = F P Fᵀ + Q, F = ∂f_t(m)/∂x;  H = ∂h_t(m⁻)/∂x, S = H P⁻ Hᵀ + Σ, K = P⁻
    Hᵀ S⁻¹; m = m⁻ + K(y − h_t(m⁻)), P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.  Means are [R, dx],
    covariances [R, dx, dx].  Jacobians come from automatic differentiation.  On a linear
    model it is the Kalman filter; otherwise the log normaliser is the one of the linearised
    model, not an evidence.  If an observation is missing, m = m⁻ and P = P⁻.

    Raises NumericalError if S cannot be factorised, ConfigMismatchError if the model observes
    another number of coordinates.

    Source: Särkkä (2013), algorithm 5.4.
    """

    requires = Requirements(capabilities={"additive_gaussian"})

    def init(
        self, model: AdditiveGaussian, problem: Sequence, rng: Rng
    ) -> Gaussians[AdditiveGaussian]:
        return start(model, problem, apart=True, evidence=isinstance(model, LinearGaussian))

    def step(
        self, state: Gaussians[AdditiveGaussian], batch: Observation, rng: Rng
    ) -> tuple[Gaussians[AdditiveGaussian], Info]:
        return extended_step(state, batch)
