"""Frequentist least squares: estimator, confidence ellipsoid, shrinkage estimators.

Shrinkage estimators have a smaller average error.  y ~ N(Xβ, σ² I) with σ² known, or estimated by
s² = ‖y − Xβ̂‖²/(N − D).  Estimates can be computed for many data sets in parallel, [..., D].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.errors import NumericalError
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal


@dataclass(frozen=True)
class LeastSquares:
    """Maximum likelihood estimate of β for one design and any number of label vectors."""

    beta: Tensor  # β̂ = (XᵀX)⁻¹Xᵀy [..., D]
    rss: Tensor  # ‖y − Xβ̂‖² [...]
    gram: Tensor  # G = XᵀX [D, D]
    L: Tensor  # its lower Cholesky factor
    rows: int  # N
    known_noise: float | None  # σ² if known

    @property
    def dim(self) -> int:
        return len(self.gram)

    @property
    def spare(self) -> int:
        """N − D, the remaining degrees of freedom for estimating σ²."""
        return self.rows - self.dim

    @property
    def noise(self) -> Tensor:
        """σ², or s²; [...]."""
        return (
            self.rss / self.spare
            if self.known_noise is None
            else torch.full_like(self.rss, self.known_noise)
        )

    @property
    def covariance(self) -> Tensor:
        """(XᵀX)⁻¹: the covariance of β̂ in units of σ² [D, D]."""
        return torch.cholesky_inverse(self.L)

    def distance(self, beta: Tensor) -> Tensor:
        """σ⁻² (β − β̂)ᵀ XᵀX (β − β̂), which defines the ellipsoid; β [..., D] -> [...].

        Source: Bardenet (2021), section 1.1."""
        return ((beta - self.beta) @ self.L).square().sum(-1) / self.noise

    def radius(self, level: float) -> float:
        """The α for which P(distance(β) ≤ α) = level, from χ²_D, or from D times F_{D, N−D} if σ²
        is estimated."""
        from scipy import stats  # slow to import

        if self.known_noise is not None:
            return float(stats.chi2.ppf(level, self.dim))
        return self.dim * float(stats.f.ppf(level, self.dim, self.spare))

    def log_likelihood(self, beta: Tensor) -> Tensor:
        """log Π N(y_i | x_iᵀβ, σ²), from ‖y − Xβ‖² = rss + (β − β̂)ᵀG(β − β̂)."""
        constant = -0.5 * self.rows * (LOG_2PI + self.noise.log())
        return constant - 0.5 * (self.rss / self.noise + self.distance(beta))


def least_squares(X: Tensor, y: Tensor, known_noise: float | None = None) -> LeastSquares:
    """Fit labels y [..., N] on X [N, D].

    Raises:
        NumericalError: X does not have full column rank, or no rows are left for estimating σ².

    Source: Bardenet (2021), section 1.1."""
    gram = X.T @ X
    L, info = torch.linalg.cholesky_ex(gram)
    if info.any():
        raise NumericalError(
            "XᵀX is singular",
            "use more rows than columns (raise dataset.n_train), and no column that is constant or "
            "a linear combination of others (remove it from dataset.inputs)",
        )
    if known_noise is None and len(X) <= X.shape[1]:
        raise NumericalError(
            "no rows are left for estimating σ²",
            "raise dataset.n_train, or give model.noise a number",
        )
    beta = torch.cholesky_solve((y @ X).unsqueeze(-1), L).squeeze(-1)
    return LeastSquares(beta, (y - beta @ X.T).square().sum(-1), gram, L, len(X), known_noise)


# Estimators, all functions of the sufficient statistics
def james_stein(fit: LeastSquares, Q: Tensor, positive: bool) -> Tensor:
    """James–Stein estimator β̂ − c σ² Q⁻¹Gβ̂ / (β̂ᵀGQ⁻¹Gβ̂); [..., D].

    It dominates β̂ under (β − b)ᵀQ(β − b) if D ≥ 3.  c = D − 2; if σ² is estimated, c σ² is
    (D − 2) rss/(N − D + 2).  Q = G is the James–Stein estimator, which shrinks towards 0 by a
    common factor; Q = I is its version for the squared length of the error, for any design.
    ``positive`` truncates each principal axis of G relative to Q at 0 instead of changing its sign
    (for Q = G the positive part).

    Source: James & Stein (1961), section 2; Berger (1976).
    """
    D = fit.dim
    # estimates σ²
    scaled = fit.known_noise if fit.known_noise is not None else fit.rss / (fit.spare + 2)
    # in coordinates with Q = I and G = diag(g), β = Q^{−½} V u
    root = torch.linalg.cholesky(Q)  # Q = R Rᵀ
    inner = torch.linalg.solve_triangular(root, fit.gram, upper=False)
    inner = torch.linalg.solve_triangular(root, inner.T, upper=False)
    g, V = torch.linalg.eigh(0.5 * (inner + inner.T))  # [D], [D, D]
    u = fit.beta @ root @ V  # [..., D]
    weight = (u * g).square().sum(-1)  # β̂ᵀGQ⁻¹Gβ̂
    factor = 1 - ((D - 2) * scaled / weight).unsqueeze(-1) * g
    u = u * (factor.clamp_min(0) if positive else factor)
    return torch.linalg.solve_triangular(root.T, (u @ V.T).unsqueeze(-1), upper=True).squeeze(-1)


def ridge(fit: LeastSquares, penalty: Tensor) -> Tensor:
    """(G + diag(λ))⁻¹ G β̂ = (XᵀX + diag(λ))⁻¹ Xᵀy, λ [D], or [..., D] separately for each data
    set; [..., D].

    Source: Hoerl & Kennard (1970), eq. (2.3)."""
    return torch.linalg.solve(
        fit.gram + penalty.diag_embed(), fit.gram @ fit.beta.unsqueeze(-1)
    ).squeeze(-1)


def hkb_penalty(fit: LeastSquares, free: int) -> Tensor:
    """λ = D σ̂²/‖β̂‖² for the D coefficients after the first ``free`` ones, which are not
    penalised; [...].

    Source: Hoerl, Kennard & Baldwin (1975), eq. (2.1)."""
    return (fit.dim - free) * fit.noise / fit.beta[..., free:].square().sum(-1)


def ridge_risk(
    gram: Tensor, beta: Tensor, noise: float, penalty: Tensor, Q: Tensor
) -> tuple[Tensor, Tensor]:
    """Exact variance and squared bias of ridge under (β − b)ᵀQ(β − b): E = σ² tr(Q W G Wᵀ) + βᵀ(WG
    − I)ᵀQ(WG − I)β.

    W = (G + diag(λ))⁻¹; λ = 0 gives σ² tr(QG⁻¹) and 0, the risk of least squares.

    Source: Hoerl & Kennard (1970), eq. (4.4)."""
    W = torch.linalg.inv(gram + penalty.diag())
    bias = (W @ gram) @ beta - beta
    return noise * (Q @ W @ gram @ W.T).trace(), bias @ Q @ bias


@dataclass(frozen=True)
class LinearData:
    """Observed y ~ N(Xβ, σ² I), and β and σ² for simulating repetitions.

    These are true values if the data were simulated, otherwise estimates (a parametric
    bootstrap)."""

    X: Tensor  # [N, D]
    y: Tensor  # [N]
    names: list[str]  # of the D coefficients
    known_noise: float | None  # σ² if known to the model
    beta: Tensor  # [D], for the repetitions
    noise: float  # σ² for the repetitions
    is_simulated: bool  # True if these two are true values

    @property
    def fit(self) -> LeastSquares:
        return least_squares(self.X, self.y, self.known_noise)

    def errors(self, n: int, generator: torch.Generator) -> Tensor:
        """σ ε of n simulated data sets, [n, N]."""
        return self.noise**0.5 * standard_normal((n, len(self.X)), generator, self.X)

    def sample_datasets(self, n: int, generator: torch.Generator) -> LeastSquares:
        """Least squares on n simulated data sets y* ~ N(Xβ, σ² I)."""
        return least_squares(
            self.X, self.X @ self.beta + self.errors(n, generator), self.known_noise
        )
