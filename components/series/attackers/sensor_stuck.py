"""A sensor that occasionally repeats its last value."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.registry import register
from components.series.attackers.bursts import BurstContamination


@register("attacker", "sensor_stuck")
class SensorStuck(BurstContamination):
    """Repeats the sensor's last value in runs of geometric length that cover a share of all times.

    y'_t = y_s where b_t = 1, s < t the last time with b_s = 0 and an observation, and y_t
    elsewhere; b is a stationary two-state chain with P(b_t = 1) = p_c and runs of ones of
    mean length ``run_length``.  Before its first value the sensor cannot be stuck.  A
    missing observation stays missing.  Observations are [R, T, dy]; all coordinates of a
    time are stuck together.  The error of a stuck sensor depends on the state's motion since time
    s, so it has no fixed distribution.

    Source: Balaban et al. (2009), of frozen sensors.
    """

    run_length: Annotated[float, Field(ge=1)]

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A copy of the observations [R, T, dy] with the last value repeated while the sensor is
        stuck."""
        y = clean.y
        stuck = self.draw_bursts(y, rng)  # [R, T]
        is_observed = ~y.isnan().any(-1)
        times = torch.arange(y.shape[1], device=y.device).expand_as(stuck)
        last = torch.where(is_observed & ~stuck, times, -1).cummax(1).values  # [R, T]
        repeated = y.gather(1, last.clamp_min(0).unsqueeze(-1).expand_as(y))
        return torch.where((stuck & is_observed & (last >= 0)).unsqueeze(-1), repeated, y)
