"""A simulated Gaussian process in time with a Matérn kernel, seen through noise at regular
steps."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import Setting, ZeroToBelowOne
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.maths.matern_state_space import Smoothness, matern_matrices
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data.realised import SimulatedSeries


@register("dataset", "matern_sde")
class MaternSeries(SimulatedSeries):
    """Series of a Gaussian process with a Matérn kernel, simulated through its SDE.

    In the form of a stochastic differential equation, x_t = (f, f', …)(t Δτ) has ν + 1/2
    coordinates: x_0 ~ N(0, P∞), x_t = A x_{t−1} + N(0, Q), y_t = f(t Δτ) + N(0, σ²); each
    observation is missing (NaN) with the same probability, independently.  The process f
    [1, T, 1], the only truth to be estimated, is the same for all R replicates; each
    replicate has its own observations y [R, T, 1].

    Raises:
        NumericalError: Q has no Cholesky factor.

    Source: Boustati (2021), appendix D.3.6; Hartikainen and Särkkä (2010).
    """

    simulates = {"linear_gaussian"}

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
        # In float64 on the CPU, states first: neither dtype, device nor the number of replicates
        # changes the path.
        drive = torch.randn(
            self.n_steps + 1, len(matrices["A"]), generator=rng.data, dtype=torch.float64
        )
        x = factors["P0"] @ drive[0]
        path = torch.empty_like(drive[1:])
        for t in range(self.n_steps):
            x = path[t] = matrices["A"] @ x + factors["Q"] @ drive[t + 1]

        def observe(generator: torch.Generator) -> Tensor:
            noise = torch.randn(
                setting.replicates, self.n_steps, generator=generator, dtype=torch.float64
            )
            y = path[:, 0] + math.sqrt(self.noise_variance) * noise  # [R, T]
            if self.missing:
                is_missing = (
                    torch.rand(y.shape, generator=generator, dtype=torch.float64) < self.missing
                )
                y = y.masked_fill(is_missing, math.nan)
            return setting.place(y.unsqueeze(-1))

        return Sequence(
            name=self.name,
            states=setting.place(path[:, :1].unsqueeze(0)),
            observations=observe(rng.data),
            redraw=observe,
            system=LinearGaussianSystem(
                **{name: setting.place(matrix) for name, matrix in matrices.items()}
            ),
            means=setting.place(path[:, :1].unsqueeze(0)),
            state_names=["f"],
            figures=[states, coverage],
        )
