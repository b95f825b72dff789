"""Simulated returns with hidden stochastic volatility."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat

from components.contracts.capabilities import AutoregressiveVolatility
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.linear_gaussian import StateSource, draw_drive
from components.series.sequence import Sequence
from components.series.sequence_data.realised import SimulatedSeries


@register("dataset", "stochastic_volatility")
class StochasticVolatilityReturns(SimulatedSeries):
    """Returns of the stochastic volatility model, simulated.

    x_0 ~ N(μ, σ²/(1 − φ²)), x_t = μ + φ(x_{t−1} − μ) + σ η_t, y_t = exp(x_t/2) ε_t with standard
    normal η, ε.  The log-variances x [1, T, 1] are the same for all R replicates or, with
    ``states: own``, [R, T, 1]; each replicate has its own returns y [R, T, 1].

    Source: Taylor (1982); Kim, Shephard and Chib (1998), eq. (1)."""

    simulates = {AutoregressiveVolatility}

    mu: float
    phi: Annotated[float, Field(gt=-1, lt=1)]
    sigma: PositiveFloat
    states: StateSource

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        drive = draw_drive(self.states, setting.replicates, self.n_steps + 1, 1, rng.data)[..., 0]
        x = self.mu + self.sigma / math.sqrt(1 - self.phi**2) * drive[..., 0]
        path = torch.empty_like(drive[..., 1:])  # [T] or [R, T]
        for t in range(self.n_steps):
            x = self.mu + self.phi * (x - self.mu) + self.sigma * drive[..., t + 1]
            path[..., t] = x
        path = path.unsqueeze(-1)
        return self.observe(
            rng,
            setting,
            path,
            torch.zeros(self.n_steps, 1, dtype=torch.float64),
            lambda noise: torch.exp(path / 2) * noise,
            system=AutoregressiveVolatility(self.mu, self.phi, self.sigma),
            state_names=["log-variance"],
            figures=[states, coverage],
        )
