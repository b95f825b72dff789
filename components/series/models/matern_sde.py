"""Gaussian process regression in time with a Matérn kernel, as a linear Gaussian state-space
model."""

from __future__ import annotations

from pydantic import PositiveFloat

from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.maths.matern_state_space import Smoothness, matern_matrices
from components.series.models.families import LinearGaussianModel
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import LinearGaussianSystem, Sequence


@register("model", "matern_sde")
class MaternSDE(LinearGaussianModel):
    """Gaussian process with a Matérn kernel, as a state-space model with Gaussian noise.

    The process is observed at steps Δτ. x_t = (f, f', …)(t Δτ) of ν + 1/2 coordinates:
    x_0 ~ N(0, P∞), x_t = A x_{t−1} + N(0, Q), y_t = f(t Δτ) + N(0, σ²), with A = exp(Δτ F),
    λ = √(2ν)/ℓ, Q = P∞ − A P∞ Aᵀ. For ν = 5/2 and κ = σ_s² λ²/3

        F = [0 1 0; 0 0 1; −λ³ −3λ² −3λ],   P∞ = [σ_s² 0 −κ; 0 κ 0; −κ 0 σ_s² λ⁴]

    Particles are [R, N, d]. Where the data know the truth of fewer coordinates than d,
    these are the first. Raises ConfigMismatchError on observations of several coordinates,
    NumericalError when Q has no Cholesky factor.

    Source: Boustati (2021), appendix D.3.6 (its P∞ lacks a sign in one corner); Hartikainen
    and Särkkä (2010).
    """

    requires = Requirements(
        kinds=frozenset({"sequence"}),
        refused_traits={"several_numbers": "is of one number at a time"},
    )
    smoothness: Smoothness
    lengthscale: PositiveFloat
    variance: PositiveFloat
    noise_variance: PositiveFloat
    step: PositiveFloat

    def build(self, problem: Sequence, rng: Rng) -> LinearGaussianModule:
        observed = problem.observations.shape[2]
        if observed != 1:
            raise ConfigMismatchError(
                f"model={self.name}: the process has one coordinate, dataset={problem.name} observes {observed}"
            )
        matrices = matern_matrices(
            self.smoothness, self.lengthscale, self.variance, self.noise_variance, self.step
        )
        return LinearGaussianModule(
            LinearGaussianSystem(
                **{name: matrix.to(problem.observations) for name, matrix in matrices.items()}
            )
        )
