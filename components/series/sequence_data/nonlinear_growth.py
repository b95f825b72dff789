"""A simulated series of the nonlinear growth model."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat

from components.contracts.roles import Setting
from components.contracts.sequences import TrueParameters
from components.contracts.streams import Rng
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.states import states
from components.series.models.nonlinear_growth import growth_mean
from components.series.sequence import Sequence
from components.series.sequence_data.realised import SimulatedSeries


@register("dataset", "nonlinear_growth")
class NonlinearGrowthSeries(SimulatedSeries):
    """Series of the univariate nonlinear growth model, simulated.

    x_0 ~ N(m, p²), x_t = x_{t−1}/2 + 25 x_{t−1}/(1 + x_{t−1}²) + 8 cos 1.2 t + N(0, s_x²), y_t =
    x_t²/20 + N(0, s_y²).  The states x [1, T, 1] are the same for all R replicates; each has its
    own observations y [R, T, 1].

    Source: Gordon, Salmond and Smith (1993), section 4; Kitagawa (1987)."""

    initial_mean: float
    initial_sd: PositiveFloat
    state_sd: PositiveFloat
    observation_sd: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        drive = torch.randn(self.n_steps + 1, generator=rng.data, dtype=torch.float64)
        x = self.initial_mean + self.initial_sd * drive[0]
        path = torch.empty_like(drive[1:])
        for t in range(self.n_steps):
            x = path[t] = growth_mean(x, t + 1) + self.state_sd * drive[t + 1]
        path = path.unsqueeze(1)
        means = path.square() / 20
        return self.observe(
            rng,
            setting,
            path,
            means,
            lambda noise: means + self.observation_sd * noise,
            system=TrueParameters(
                {"state_sd": self.state_sd, "observation_sd": self.observation_sd}
            ),
            state_names=["state"],
            figures=[states, coverage],
        )
