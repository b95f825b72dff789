"""The weighted-observation-likelihood filter: a Kalman filter with bounded influence of
outliers."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian
from components.contracts.requirements import Requirements
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI
from components.registry import register
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    GaussianFilter,
    Gaussians,
    GaussianStep,
    apply_gain,
    finish_filter_step,
    gain,
    innovation,
    start,
)
from components.series.gaussian_filtering.linearisation import predict
from components.series.sequence import Sequence


@register("inference", "wolf_filter")
class WolfFilter(GaussianFilter[AdditiveGaussian]):
    """Weighted-observation-likelihood filter (WoLF): the Kalman update with Σ/w_t².

    w_t is small if y_t is surprising.  The loss −w_t² log N(y_t | h_t(x), Σ) instead of the
    negative log-likelihood gives P_t⁻¹ = (P⁻)⁻¹ + w_t² Hᵀ Σ⁻¹ H and m_t = m⁻ + w_t² P_t Hᵀ Σ⁻¹ (y_t
    − ŷ_t), ŷ_t = h_t(m⁻), H = ∂h_t(m⁻)/∂x: the Kalman update by w_t y_t with w_t H, which is how it
    is computed.  With d² = (y − ŷ)ᵀ Σ⁻¹ (y − ŷ) the weight is

        imq  (1 + ‖y − ŷ‖²/c²)^−½      md  (1 + d²/c²)^−½      tmd  1{d² ≤ c²}

    and c → ∞ gives the (extended) Kalman filter.  Means are [R, dx], covariances
    [R, dx, dx].  The log normaliser belongs to the generalised posterior and is not an evidence.
    If an observation is missing, m = m⁻ and P = P⁻.

    Raises NumericalError if S cannot be factorised.

    Source: Duran-Martin et al. (2024), section 3.
    """

    requires = Requirements(capabilities={AdditiveGaussian})
    weight: Literal["imq", "md", "tmd"]
    soft_threshold: PositiveFloat

    def weigh(self, v: Tensor, Sigma: Tensor) -> Tensor:
        """w of innovations v = y − ŷ [R, dy] -> [R]."""
        v = v / self.soft_threshold
        if self.weight != "imq":
            v = apply_gain(torch.linalg.inv(torch.linalg.cholesky(Sigma)), v)
        squares = v.square().sum(1)  # ‖y − ŷ‖²/c² or d²/c²
        return (squares <= 1).to(v) if self.weight == "tmd" else (1 + squares).rsqrt()

    def init(
        self, model: AdditiveGaussian, problem: Sequence, rng: Rng
    ) -> Gaussians[AdditiveGaussian]:
        return start(model, problem, apart=True, evidence=False)

    def step(
        self, state: Gaussians[AdditiveGaussian], batch: Observation, rng: Rng
    ) -> GaussianStep[AdditiveGaussian]:
        Sigma = state.model.Sigma
        prior_m, prior_P, predicted, H = predict(state, batch)
        v = innovation(batch, predicted)
        w = self.weigh(v, Sigma)  # [R]
        filter_gain = gain(
            state.P, prior_P, Deviations(None, w.view(-1, 1, 1) * H, prior_P), Sigma, batch.t
        )
        # ∫ N(y | Hx, Σ)^w² dN(x | m⁻, P⁻) = N(w v | 0, S) ((2π)^dy |Σ|)^{(1 − w²)/2}
        extra = 0.5 * (1 - w.square()) * (Sigma.logdet() + v.shape[1] * LOG_2PI)
        after, info = finish_filter_step(
            state=state,
            batch=batch,
            prior_m=prior_m,
            predicted=predicted,
            found=filter_gain,
            v=w.unsqueeze(1) * v,
            extra=extra,
            weight=w.square(),
        )
        return after, info | {"innovation": v.norm(dim=1), "weight": w}
