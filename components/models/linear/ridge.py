"""Ridge regression: penalised least squares, and its interpretation as a Bayes rule."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_REAL_LABEL
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.conjugate_regression import coefficients
from components.models.linear.design import check_one_task, design, name_columns, select_labelled
from components.problems.supervised import Supervised
from components.registry import register

# candidate penalties of gcv, in units of the mean diagonal of XᵀX
GRID = 10.0 ** torch.linspace(-6, 6, 121, dtype=torch.float64)


def effective_parameters(X: Tensor, penalty: Tensor) -> float:
    """tr X(XᵀX + diag(λ))⁻¹Xᵀ, the effective degrees of freedom of the fit; X [N, D], λ [D]."""
    gram = X.T @ X
    return float(torch.linalg.solve(gram + penalty.diag(), gram).trace())


def generalised_cross_validation(X: Tensor, y: Tensor, penalty: Tensor) -> float:
    """N ‖y − Xβ̂‖² / (N − df)², which approximates the leave-one-out error.

    Source: Golub, Heath & Wahba (1979), eq. (1.4)."""
    residual = y - X @ coefficients(X, y, penalty).m
    return float(
        len(y) * residual.square().sum() / (len(y) - effective_parameters(X, penalty)) ** 2
    )


def ridge_path(X: Tensor, y: Tensor, penalties: Tensor, free: int = 0) -> Tensor:
    """Estimates at each of Λ penalties, with the first ``free`` columns unpenalised: [N, D], [N],
    [Λ] -> [Λ, D].

    Source: Hoerl & Kennard (1970), section 4 (the ridge trace)."""
    columns = X.new_ones(X.shape[1])
    columns[:free] = 0
    return torch.stack([coefficients(X, y, penalty * columns).m for penalty in penalties.to(X)])


class RidgeModule(nn.Module):
    """Ridge regression by the normal equations.

    It provides the posterior of β under the prior that corresponds to λ.
    """

    def __init__(self, problem: Supervised, penalty: float | Literal["gcv"], intercept: bool):
        super().__init__()
        self.penalty = penalty
        self.intercept = intercept
        self.names = name_columns(problem.n_inputs, intercept)

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """β̂ and (XᵀX + λI)⁻¹, with σ̂² = ‖y − Xβ̂‖²/(N − df) instead of σ²; the fit is
        deterministic.

        If there are fewer rows than effective parameters, the noise is the variance of the
        labels."""
        X, y = select_labelled(batch, self.intercept)
        columns = X.new_ones(X.shape[1])
        columns[: int(self.intercept)] = 0  # the intercept is not penalised
        penalty = self.penalty if isinstance(self.penalty, float) else self._best(X, y, columns)
        solution = coefficients(X, y, penalty * columns)
        spare = len(y) - effective_parameters(X, penalty * columns)
        residual = (y - X @ solution.m).square().sum()
        return {
            "beta": solution.m,
            "covariance": solution.covariance,  # in units of σ²
            "noise": residual / spare if spare > 1e-6 else y.var(correction=0),
            "penalty": X.new_tensor(penalty),
        }

    def _best(self, X: Tensor, y: Tensor, columns: Tensor) -> float:
        # mean of the diagonal of XᵀX
        unit = float((X * columns).square().sum(0).sum() / columns.sum())
        errors = [generalised_cross_validation(X, y, unit * g * columns) for g in GRID]
        usable = [e if math.isfinite(e) else math.inf for e in errors]
        return unit * float(GRID[usable.index(min(usable))])

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> GaussianMixture:
        """N(xᵀβ̂, σ̂²(1 + xᵀ(XᵀX + λI)⁻¹x)), the Bayesian predictive with σ̂² instead of σ²."""
        X = design(x, self.intercept)
        mean = (X @ fitted["beta"])[None, :, None]  # [1, B, 1]
        spread = 1 + (X @ fitted["covariance"] * X).sum(1)
        return GaussianMixture(mean, (fitted["noise"] * spread)[None, :, None])


@register("model", "ridge")
class Ridge(Model[Supervised, RidgeModule]):
    """Ridge regression, least squares penalised by the squared length of the coefficients.

    β̂ = argmin ‖y − β_0 − Xβ‖² + λ‖β‖² = (XᵀX + λI)⁻¹Xᵀy, with an unpenalised intercept.  Under y ~
    N(Xβ, σ²) and the prior β ~ N(0, σ²/λ) it is the posterior mean, hence the Bayes rule for
    squared loss; ``linear_regression`` with prior_scale = λ^−½ samples from that posterior.
    Requires inference=fit.

    Raises ConfigMismatchError for a dataset of several tasks, NumericalError for a singular XᵀX +
    λI.

    Source: Hoerl & Kennard (1970), eq. (2.3); Bardenet (2021), section 1.4."""

    requires = ONE_REAL_LABEL

    penalty: Literal["gcv"] | PositiveFloat
    intercept: bool

    def build(self, problem: Supervised, rng: Rng) -> RidgeModule:
        check_one_task(problem, self.name)
        return RidgeModule(problem, self.penalty, self.intercept)
