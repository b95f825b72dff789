"""Gaussian-process regression with known hyper-parameters."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.requirements import ONE_REAL_LABEL
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.cholesky import jittered_cholesky
from components.maths.kernels import correlation
from components.models.linear.design import check_one_task
from components.problems.supervised import Supervised
from components.registry import register

SMOOTHNESS: dict[str, float] = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


class MaternRegressionModule(nn.Module):
    """f ~ GP(0, s² κ(r/ℓ)), y = f(x) + N(0, σ²), with known parameters."""

    def __init__(
        self,
        shape: Literal["matern12", "matern32", "matern52"],
        lengthscale: float,
        variance: float,
        noise: float,
    ):
        super().__init__()
        self.shape = shape
        self.lengthscale = lengthscale
        self.variance = variance
        self.known_noise = noise

    def covariance(self, x: Tensor, z: Tensor) -> Tensor:
        """k(x, z) for x [N, D], z [M, D]."""
        r2 = (
            torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist") / self.lengthscale
        ).square()
        return self.variance * correlation(r2, self.shape, slope=False)[0]

    def _factor(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """K and the lower L of K + σ² I."""
        K = self.covariance(x, x)
        noisy = K.clone()
        noisy.diagonal().add_(self.known_noise)
        return K, jittered_cholesky(noisy, 1e-10 * self.variance, "the covariance of the labels")[0]

    def smoother(self, x: Tensor) -> Tensor:
        """S = K (K + σ² I)⁻¹ [N, N]: f | y ~ N(S y, σ² S)."""
        K, L = self._factor(x)
        return torch.cholesky_solve(K, L).T

    def condition(self, x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [M] of f at ``at`` [M, D] given y [N] at x [N, D]."""
        _, L = self._factor(x)
        cross = torch.linalg.solve_triangular(L, self.covariance(x, at), upper=False)  # [N, M]
        mean = cross.T @ torch.linalg.solve_triangular(L, y[:, None], upper=False)[:, 0]
        return mean, (self.variance - cross.square().sum(0)).clamp_min(0)

    def exponent(self, smoothness: float) -> float:
        """−min(α, β)/(2α + 1), D = 1.

        Source: van der Vaart & van Zanten (2011), on Matérn kernels."""
        alpha = SMOOTHNESS[self.shape]
        return -min(alpha, smoothness) / (2 * alpha + 1)


@register("model", "matern_regression")
class MaternRegression(Model[Supervised, MaternRegressionModule]):
    """Gaussian-process regression on one input with a fixed Matérn kernel.

    f ~ GP(0, s² κ_α(|x − x'|/ℓ)), paths almost α times differentiable, y = f(x) + N(0, σ²);
    f | y ~ N(S y, σ² S) at the inputs, S = K (K + σ² I)⁻¹. The posterior contracts to a
    β-smooth f₀ at the rate n^{−min(α, β)/(2α + 1)}.

    Raises ConfigMismatchError for several inputs or tasks, NumericalError if K + σ² I is singular.

    Source: Rasmussen & Williams (2006), eqs. (2.23), (2.24), (4.14); van der Vaart & van
    Zanten (2011), on Matérn kernels.
    """

    requires = ONE_REAL_LABEL
    shape: Literal["matern12", "matern32", "matern52"]
    lengthscale: PositiveFloat
    variance: PositiveFloat
    noise: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> MaternRegressionModule:
        check_one_task(problem, self.name)
        return MaternRegressionModule(self.shape, self.lengthscale, self.variance, self.noise)
