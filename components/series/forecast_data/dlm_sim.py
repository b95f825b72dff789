"""The simulated dynamic linear model of Gallego's initial experiments."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.sequences import TrueParameters
from components.contracts.streams import Rng
from components.registry import register
from components.series.forecasting import Forecasting, Origin, split
from components.series.sequence import Sequence


@register("dataset", "dlm_sim")
class DlmSim(Dataset[Forecasting]):
    """A simulated autoregression observed with noise.

    z_0 = 0, z_{t+1} ~ N(0.5 z_t + 1, σ_tr²), x_t ~ N(3 z_t + 0.5, σ_em²), t = 1 … T; x [1, T, 1].
    The source gives neither T nor the standard deviations.  The last ``n_ahead`` observations are
    to be forecast.

    Raises ConfigMismatchError if no observations are left to learn from.

    Source: Gallego (2021), appendix 2.B.1."""

    kind = "sequence"
    traits = {"unknown_states"}

    n_steps: PositiveInt
    n_ahead: PositiveInt
    origin: Origin
    observation_sd: PositiveFloat
    transition_sd: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        noise = torch.randn(2, self.n_steps, generator=rng.data, dtype=torch.float64)
        z = torch.zeros((), dtype=torch.float64)
        path = torch.empty(self.n_steps, dtype=torch.float64)
        for t in range(self.n_steps):
            z = path[t] = 0.5 * z + 1.0 + self.transition_sd * noise[0, t]
        return self.hide_future(3.0 * path + 0.5 + self.observation_sd * noise[1], setting)

    def hide_future(self, y: Tensor, setting: Setting) -> Forecasting:
        """The problem of a simulated series y [T]."""
        sequence = Sequence(
            name=self.name,
            states=None,
            observations=setting.place(y.view(1, -1, 1)),
            system=TrueParameters(
                {"observation_sd": self.observation_sd, "transition_sd": self.transition_sd}
            ),
            state_names=["x"],
        )
        return split(sequence, self.n_ahead, self.origin)
