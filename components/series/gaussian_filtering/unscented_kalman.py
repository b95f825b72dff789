"""Unscented Kalman filter for R observation sequences in parallel."""

from __future__ import annotations

import math

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian
from components.contracts.requirements import Requirements
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    GaussianFilter,
    Gaussians,
    GaussianStep,
    finish_filter_step,
    gain,
)
from components.series.sequence import Sequence


@register("inference", "unscented_kalman")
class UnscentedKalman(GaussianFilter[AdditiveGaussian]):
    """Unscented Kalman filter: a Gaussian for each time, from 2n + 1 sigma points propagated
    through the model without linearisation.

    With λ = α²(n + κ) − n and P = L Lᵀ the points are X_0 = m, X_±i = m ± √(n + λ) L_i, their
    weights W_0 = λ/(n + λ) for means, W_0 + 1 − α² + β for covariances and 1/(2(n + λ)) for all
    others.  m⁻ = Σ W_i f_t(X_i), P⁻ = Σ W_i (f_t(X_i) − m⁻)(…)ᵀ + Q; with new points of N(m⁻, P⁻):
    ŷ = Σ W_i h_t(X_i), S = Σ W_i (h_t(X_i) − ŷ)(…)ᵀ + Σ, C = Σ W_i (X_i − m⁻)(h_t(X_i) − ŷ)ᵀ, K = C
    S⁻¹, m = m⁻ + K(y − ŷ), P = P⁻ − K S Kᵀ in Joseph's form.  Means are [R, dx], covariances [R,
    dx, dx].  For a linear model it is the Kalman filter; otherwise the log normaliser is not an
    evidence.  If an observation is missing, m = m⁻ and P = P⁻.

    Raises ConfigMismatchError if n + κ is not positive, NumericalError if a covariance cannot be
    factorised.

    Source: Särkkä (2013), algorithm 5.14; Wan and van der Merwe (2000)."""

    requires = Requirements(capabilities={AdditiveGaussian})
    alpha: PositiveFloat
    beta: NonNegativeFloat
    kappa: float

    def weights(self, n: int, like: Tensor) -> tuple[Tensor, Tensor, float]:
        """Weights of the 2n + 1 points for means and for covariances, and n + λ."""
        spread = self.alpha**2 * (n + self.kappa)  # n + λ
        means = like.new_full((2 * n + 1,), 0.5 / spread)
        means[0] = 1 - n / spread
        covariances = means.clone()
        covariances[0] += 1 - self.alpha**2 + self.beta
        return means, covariances, spread

    def init(
        self, model: AdditiveGaussian, problem: Sequence, rng: Rng
    ) -> Gaussians[AdditiveGaussian]:
        n = len(model.m0)
        if n + self.kappa <= 0:
            raise ConfigMismatchError(
                f"inference.kappa = {self.kappa:g}: n + κ must be positive, for n = {n} coordinates of the state"
            )
        return super().init(model, problem, rng)

    def step(
        self, state: Gaussians[AdditiveGaussian], batch: Observation, rng: Rng
    ) -> GaussianStep[AdditiveGaussian]:
        model = state.model
        t = batch.t
        means, covariances, spread = self.weights(state.m.shape[1], state.m)
        W = torch.diag(covariances)
        propagated = model.transition_mean(_points(state.m, state.P, spread, t), t)  # [R, 2n+1, dx]
        prior_m = means @ propagated
        deviations = (propagated - prior_m.unsqueeze(1)).mT  # [R, dx, 2n+1]
        prior_P = deviations @ W @ deviations.mT + model.Q
        points = _points(prior_m, prior_P, spread, t)
        y_points = model.observation_mean(points, t)  # [R, 2n+1, dy]
        predicted = means @ y_points
        around = Deviations(
            (points - prior_m.unsqueeze(1)).mT, (y_points - predicted.unsqueeze(1)).mT, W
        )
        filter_gain = gain(state.P, prior_P, around, model.Sigma, t)
        return finish_filter_step(state, batch, prior_m, predicted, filter_gain)


def _points(m: Tensor, P: Tensor, spread: float, t: int) -> Tensor:
    """Sigma points of N(m, P): m [R, n], P [R, n, n] -> [R, 2n + 1, n]."""
    L, failed = torch.linalg.cholesky_ex(P)
    if failed.any():
        raise NumericalError(
            f"Cholesky of the state's covariance failed at t = {t}",
            "raise inference.alpha, or set dtype=float64",
        )
    columns = math.sqrt(spread) * L.mT  # row i is L_i
    away = torch.cat([torch.zeros_like(m).unsqueeze(1), columns, -columns], 1)
    return m.unsqueeze(1) + away
