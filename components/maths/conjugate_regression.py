"""Least squares and Bayesian linear regression in closed form.

y ~ N(Xβ, σ² I),   β | σ² ~ N(0, σ² diag(λ)⁻¹),   σ² known or ~ InvGamma(a, b)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.errors import NumericalError
from components.maths.cholesky import LOG_2PI


@dataclass(frozen=True)
class Coefficients:
    """β | σ², y ~ N(m, σ² Λ⁻¹): the part of the posterior common to known and unknown σ²."""

    m: Tensor  # posterior mean, equal to the ridge estimate [D]
    L: Tensor  # lower Cholesky factor of Λ = XᵀX + diag(λ) [D, D]
    loss: Tensor  # ‖y − Xm‖² + Σ λ m², the penalised sum of squares at its minimum []
    rows: int  # N
    penalty: Tensor  # λ [D]

    @property
    def covariance(self) -> Tensor:
        """Λ⁻¹: the covariance in units of σ², [D, D]."""
        return torch.cholesky_inverse(self.L)

    @property
    def half_log_determinants(self) -> Tensor:
        """½ log |diag(λ)| − ½ log |Λ|."""
        return 0.5 * self.penalty.log().sum() - self.L.diagonal().log().sum()

    def log_evidence(self, noise: float) -> Tensor:
        """log p(y | X, σ²) = log N(y | 0, σ²(I + X diag(λ)⁻¹ Xᵀ))."""
        constant = -0.5 * self.rows * math.log(2 * math.pi * noise)
        return constant + self.half_log_determinants - self.loss / (2 * noise)

    def log_evidence_learned(self, a: float, b: float) -> Tensor:
        """log p(y | X) under σ² ~ InvGamma(a, b): a multivariate Student t."""
        a_n, b_n = self.noise_posterior(a, b)
        gammas = math.lgamma(a_n) - math.lgamma(a) + a * math.log(b) - 0.5 * self.rows * LOG_2PI
        return gammas + self.half_log_determinants - a_n * b_n.log()

    def log_evidence_under(self, noise: float | tuple[float, float]) -> Tensor:
        """The log evidence for a known σ², or for the (a, b) of its prior."""
        return (
            self.log_evidence_learned(*noise)
            if isinstance(noise, tuple)
            else self.log_evidence(noise)
        )

    def noise_posterior(self, a: float, b: float) -> tuple[float, Tensor]:
        """σ² | y ~ InvGamma(a + N/2, b + loss/2)."""
        return a + 0.5 * self.rows, b + 0.5 * self.loss


def coefficients(X: Tensor, y: Tensor, penalty: Tensor) -> Coefficients:
    """Posterior of β given σ², with X [N, D], y [N], λ [D]; λ = 0 is a flat prior.

    m = (XᵀX + diag(λ))⁻¹ Xᵀy.

    Raises:
        NumericalError: XᵀX + diag(λ) is singular.

    Source: Murphy (2012), section 7.6.3; Hoerl & Kennard (1970).
    """
    L, info = torch.linalg.cholesky_ex(X.T @ X + penalty.diag())
    if info.any():
        raise NumericalError(
            "XᵀX + diag(λ) is singular",
            "use more regularisation: raise model.penalty or lower its prior_scale",
        )
    m = torch.cholesky_solve((X.T @ y).unsqueeze(1), L).squeeze(1)
    loss = (y - X @ m).square().sum() + (penalty * m.square()).sum()
    return Coefficients(m, L, loss, len(y), penalty)
