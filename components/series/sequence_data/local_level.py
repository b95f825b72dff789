"""A simulated random walk observed with noise, with optional missing observations."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat

from components.contracts.capabilities import LinearGaussian
from components.contracts.roles import Setting, ZeroToBelowOne
from components.contracts.streams import Rng
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.sequence import LinearGaussianSystem, Sequence
from components.series.sequence_data.realised import SimulatedSeries, place_system


@register("dataset", "local_level")
class LocalLevelSeries(SimulatedSeries):
    """Series of the local-level model, simulated.

    μ_0 ~ N(m, p²), μ_t = μ_{t−1} + N(0, s_η²), y_t = μ_t + N(0, s_ε²); each observation is missing
    (NaN) independently with a given probability.  Each of the R replicates has its own level [R, T,
    1] and its own observations [R, T, 1].

    Source: Gallego (2021), section 1.2.2; Durbin and Koopman (2012), chapter 2."""

    simulates = {LinearGaussian}

    observation_sd: PositiveFloat
    level_sd: PositiveFloat
    initial_mean: float
    initial_sd: PositiveFloat
    missing: ZeroToBelowOne

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        shape = (setting.replicates, self.n_steps)
        first = torch.randn(setting.replicates, 1, generator=rng.data, dtype=torch.float64)
        noise = torch.randn(shape, generator=rng.data, dtype=torch.float64)
        level = self.initial_mean + self.initial_sd * first + self.level_sd * noise.cumsum(1)
        level = level.unsqueeze(2)  # [R, T, 1]
        identity = torch.ones(1, 1, dtype=torch.float64)
        system = LinearGaussianSystem(
            A=identity,
            Q=self.level_sd**2 * identity,
            H=identity,
            Sigma=self.observation_sd**2 * identity,
            m0=self.initial_mean * identity[0],
            P0=self.initial_sd**2 * identity,
        )
        return self.observe(
            rng,
            setting,
            level,
            level,
            lambda noise: level + self.observation_sd * noise,
            self.missing,
            system=place_system(system, setting),
            state_names=["level"],
            figures=[states, coverage],
        )
