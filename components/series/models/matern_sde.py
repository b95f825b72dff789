"""Gaussian process regression in time with a Matérn kernel, as a linear Gaussian state-space
model."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.registry import register
from components.series.maths.matern_state_space import Smoothness, matern_matrices
from components.series.models.affine_module import AffineModule
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import UNIVARIATE, LinearGaussianSystem, Sequence

NORMAL_MAD = 1.4826  # ratio of a normal's standard deviation to its median absolute deviation


def robust_moments(y: Tensor) -> tuple[float, float]:
    """Median of the available observations [...], and (1.4826 MAD)² with MAD their median absolute
    deviation from it; 0 and 0 if all are missing."""
    observed = y[~y.isnan()].double()
    if not len(observed):
        return 0.0, 0.0
    centre = observed.quantile(0.5)
    return float(centre), float((NORMAL_MAD * (observed - centre).abs().quantile(0.5)) ** 2)


@register("model", "matern_sde")
class MaternSDE(Model[Sequence, LinearGaussianModule]):
    """Gaussian process with a Matérn kernel, as a state-space model with Gaussian noise.

    The process is observed at steps Δτ. x_t = (f, f', …)(t Δτ) has ν + 1/2 coordinates:
    x_0 ~ N(μ e, P∞), x_t = μ e + A (x_{t−1} − μ e) + N(0, Q), y_t = f(t Δτ) + N(0, σ²), with
    e = (1, 0, …), A = exp(Δτ F), λ = √(2ν)/ℓ, Q = P∞ − A P∞ Aᵀ. For ν = 5/2 and κ = σ_s² λ²/3

        F = [0 1 0; 0 0 1; −λ³ −3λ² −3λ],   P∞ = [σ_s² 0 −κ; 0 κ 0; −κ 0 σ_s² λ⁴]

    ``mean: median`` and ``variance: mad`` estimate μ and σ_s² from the observations of all
    replicates, by their median and the square of 1.4826 times their median absolute deviation.
    Both are robust to outliers at less than half of the times.  The truth is not used.

    Particles are [R, N, d]. If the true states have fewer coordinates than d, they are the first
    ones.  Raises ConfigMismatchError for multivariate observations, NumericalError if Q has no
    Cholesky factor or the MAD is 0.

    Source: Boustati (2021), appendix D.3.6 (its P∞ lacks a sign in one corner); Hartikainen
    and Särkkä (2010).
    """

    requires = UNIVARIATE
    smoothness: Smoothness
    lengthscale: PositiveFloat
    mean: float | Literal["median"]
    variance: PositiveFloat | Literal["mad"]
    noise_variance: PositiveFloat
    step: PositiveFloat

    def build(self, problem: Sequence, rng: Rng) -> LinearGaussianModule:
        problem.check_one_number(f"model={self.name}")
        mean, variance = self.moments(problem)
        matrices = matern_matrices(
            self.smoothness, self.lengthscale, variance, self.noise_variance, self.step
        )
        level = mean * matrices["H"][0]  # μ e
        shift = level - matrices["A"] @ level
        matrices["m0"] = level
        system = LinearGaussianSystem(
            **{name: matrix.to(problem.observations) for name, matrix in matrices.items()}
        )
        if mean == 0:
            return LinearGaussianModule(system)
        return AffineModule(system, shift.to(problem.observations))

    def moments(self, problem: Sequence) -> tuple[float, float]:
        """Mean μ and variance σ_s² of the process.

        Raises:
            NumericalError: more than half of the observations are equal, or all are missing.
        """
        centre, spread = robust_moments(problem.observations)
        mean = centre if self.mean == "median" else self.mean
        if self.variance != "mad":
            return mean, self.variance
        if spread == 0:
            raise NumericalError(
                "model.variance=mad: at least half of the observations are equal",
                "set model.variance to a number",
            )
        return mean, spread
