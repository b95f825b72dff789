"""A simulated Gaussian process in time with a Matérn kernel, observed with noise at regular
steps."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat

from components.contracts.capabilities import LinearGaussian
from components.contracts.roles import Setting, ZeroToBelowOne
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.linear_gaussian import walk
from components.series.maths.matern_state_space import Smoothness, matern_matrices
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data.realised import SimulatedSeries, place_system


@register("dataset", "matern_sde")
class MaternSeries(SimulatedSeries):
    """Series of a Gaussian process with a Matérn kernel, simulated through its SDE.

    In the form of a stochastic differential equation, x_t = (f, f', …)(t Δτ) has ν + 1/2
    coordinates: x_0 ~ N(0, P∞), x_t = A x_{t−1} + N(0, Q), y_t = f(t Δτ) + N(0, σ²); each
    observation is missing (NaN) with the same probability, independently.  The process f [1, T, 1],
    the only known truth, is the same for all R replicates; each replicate has its own observations
    y [R, T, 1].

    Raises:
        NumericalError: Q has no Cholesky factor.

    Source: Boustati (2021), appendix D.3.6; Hartikainen and Särkkä (2010).
    """

    simulates = {LinearGaussian}

    smoothness: Smoothness
    lengthscale: PositiveFloat
    variance: PositiveFloat
    noise_variance: PositiveFloat
    step: PositiveFloat
    missing: ZeroToBelowOne

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        matrices = matern_matrices(
            self.smoothness, self.lengthscale, self.variance, self.noise_variance, self.step
        )
        factors = {}
        for name in ("P0", "Q"):
            factors[name], failed = torch.linalg.cholesky_ex(matrices[name])
            if failed:
                raise NumericalError(
                    f"Cholesky of {name} failed with Δτ = {self.step}", "raise dataset.step"
                )
        drive = torch.randn(
            self.n_steps + 1, len(matrices["A"]), generator=rng.data, dtype=torch.float64
        )
        moves = torch.stack([factors["Q"] @ z for z in drive[1:]])
        path = walk(matrices["A"], factors["P0"] @ drive[0], moves)[:, :1]
        return self.observe(
            rng,
            setting,
            path,
            path,
            lambda noise: path + math.sqrt(self.noise_variance) * noise,
            self.missing,
            system=place_system(LinearGaussianSystem(**matrices), setting),
            state_names=["f"],
            figures=[states, coverage],
        )
