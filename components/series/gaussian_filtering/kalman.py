"""Kalman filter for R observation sequences in parallel."""

from __future__ import annotations

from components.contracts.capabilities import LinearGaussian
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
    freeze_converged_gain,
    gain,
    predicted_covariance,
    propagate_mean,
    start,
)
from components.series.sequence import Sequence


@register("inference", "kalman")
class Kalman(GaussianFilter[LinearGaussian]):
    """Kalman filter: the exact filtering distributions of a linear Gaussian state-space model.

    m⁻ = A m, P⁻ = A P Aᵀ + Q;  S = H P⁻ Hᵀ + Σ, K = P⁻ Hᵀ S⁻¹;  m = m⁻ + K(y − H m⁻),
    P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.  Means are [R, dx].  Covariances do not depend on the
    observed values: replicates with the same missing observations share one [dx, dx], which stays
    fixed once a step changes it by no more than rounding.  If an observation is missing, m = m⁻ and
    P = P⁻.  Quantiles are Gaussian; the log normaliser is the log evidence Σ_t log N(y_t | H m⁻,
    S).

    Raises NumericalError if S cannot be factorised.

    Source: Kalman (1960); Särkkä (2013), theorem 4.2.
    """

    requires = Requirements(capabilities={LinearGaussian})

    def init(self, model: LinearGaussian, problem: Sequence, rng: Rng) -> Gaussians[LinearGaussian]:
        """The prior; its covariance is shared if all replicates have one model and the same missing
        observations."""
        missing = problem.missing
        differ = max(matrix.dim() for matrix in (model.P0, model.Q, model.Sigma)) == 3
        return start(model, problem, apart=differ or bool((missing != missing[:1]).any()))

    def step(
        self, state: Gaussians[LinearGaussian], batch: Observation, rng: Rng
    ) -> GaussianStep[LinearGaussian]:
        model = state.model
        prior_m = propagate_mean(model, state.m)  # [R, dx]
        predicted = prior_m @ model.H.T  # [R, dy]
        filter_gain = state.gain
        if filter_gain is None or filter_gain.start is not state.P:  # P has not converged
            prior_P = predicted_covariance(model.A, state.P, model.Q)
            deviations = Deviations(None, model.H, prior_P)
            filter_gain = freeze_converged_gain(
                gain(state.P, prior_P, deviations, model.Sigma, batch.t)
            )
        return finish_filter_step(state, batch, prior_m, predicted, filter_gain)
