"""A simulated linear Gaussian series with arbitrary matrices."""

from __future__ import annotations

import torch
from pydantic import model_validator

from components.contracts.capabilities import LinearGaussian
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.linear_gaussian import SHAPES, Matrix, make_system, tensors, walk
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data.realised import SimulatedSeries, place_system


@register("dataset", "lgssm")
class LgssmSeries(SimulatedSeries):
    """Simulated series of a linear Gaussian state-space model with arbitrary matrices.

    x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ).  The states x
    [1, T, dx] are the same for all R replicates; each has its own observations y
    [R, T, dy].

    Raises:
        ValueError: a matrix does not match the size of the others, or a covariance is invalid; the
            message names the key.

    Source: Särkkä (2013), section 4.3; Boustati (2021), section 2.6.
    """

    simulates = {LinearGaussian}

    A: Matrix
    Q: Matrix
    H: Matrix
    Sigma: Matrix
    m0: list[float]
    P0: Matrix

    @model_validator(mode="after")
    def _fits(self) -> LgssmSeries:
        self.system()
        return self

    def system(self) -> LinearGaussianSystem:
        """A, Q, H, Σ, m_0, P_0 in float64."""
        return make_system(tensors({name: dict(self)[name] for name in SHAPES}))

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        system = self.system()
        z = torch.randn(len(system.m0), generator=rng.data, dtype=torch.float64)
        x0 = system.m0 + torch.linalg.cholesky(system.P0) @ z
        drive = torch.randn(self.n_steps, len(x0), generator=rng.data, dtype=torch.float64)
        path = walk(system.A, x0, drive @ torch.linalg.cholesky(system.Q).T)
        means = path @ system.H.T
        return self.observe(
            rng,
            setting,
            path,
            means,
            lambda noise: means + noise @ torch.linalg.cholesky(system.Sigma).T,
            system=place_system(system, setting),
            state_names=[f"x{j + 1}" for j in range(len(x0))],
            figures=[states, coverage],
        )
