"""Kalman filter for R observation sequences in parallel."""

from __future__ import annotations

from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    Gain,
    GaussianFilter,
    Gaussians,
    finish_filter_step,
    freeze_converged_gain,
    gain,
    predicted_covariance,
    propagate_mean,
    start,
)
from components.series.sequence import Sequence


def kalman_gain(model: LinearGaussian, P: Tensor, last: Gain | None, t: int) -> Gain:
    """K, S and the next P after P; ``last`` itself where P has settled."""
    if last is not None and last.start is P:
        return last
    prior_P = predicted_covariance(model.A, P, model.Q)
    return freeze_converged_gain(
        gain(P, prior_P, Deviations(None, model.H, prior_P), model.Sigma, t)
    )


@register("inference", "kalman")
class Kalman(GaussianFilter[LinearGaussian]):
    """Kalman filter: the exact filtering distributions of a linear Gaussian state-space model.

    m⁻ = A m, P⁻ = A P Aᵀ + Q;  S = H P⁻ Hᵀ + Σ, K = P⁻ Hᵀ S⁻¹;  m = m⁻ + K(y − H m⁻),
    P = (I − KH) P⁻ (I − KH)ᵀ + K Σ Kᵀ.  Means are [R, dx].  Covariances do not depend on
    the observed values: replicates that miss the same observations, or none, share one
    [dx, dx], which stays fixed once a step changes it by no more than rounding.  If an
    observation is missing, m = m⁻ and P = P⁻.  Quantiles are Gaussian; the log normaliser
    is the log evidence Σ_t log N(y_t | H m⁻, S).

    Raises NumericalError if S cannot be factorised.

    Source: Kalman (1960); Särkkä (2013), theorem 4.2.
    """

    requires = Requirements(capabilities={"linear_gaussian"})

    def init(self, model: LinearGaussian, problem: Sequence, rng: Rng) -> Gaussians[LinearGaussian]:
        """The prior, its covariance shared where all replicates have one model and miss the same
        observations."""
        missing = problem.missing
        differ = max(matrix.dim() for matrix in (model.P0, model.Q, model.Sigma)) == 3
        return start(model, problem, apart=differ or bool((missing != missing[:1]).any()))

    def step(
        self, state: Gaussians[LinearGaussian], batch: Observation, rng: Rng
    ) -> tuple[Gaussians[LinearGaussian], Info]:
        model = state.model
        prior_m = propagate_mean(model, state.m)  # [R, dx]
        predicted = prior_m @ model.H.T  # [R, dy]
        filter_gain = kalman_gain(model, state.P, state.gain, batch.t)
        return finish_filter_step(state, batch, prior_m, predicted, filter_gain)
