"""Sunspots by month, or a simulated series in their place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.registry import register
from components.series.forecast_data.monthly_record import CSV, LogRecord

MONTHS = 2820  # of the record, to December 1983


@register("dataset", "sunspots")
class Sunspots(LogRecord):
    """Monthly mean sunspot numbers (Zurich), January 1749 to December 1983.

    Irregular cycles of about eleven years; quiet months are 0, which has no logarithm.
    y [1, n_train, 1] and the ``n_ahead`` months that follow.  If the file cannot be
    obtained, a simulated record replaces it, named ``sunspots-sim``, with a
    ``SimulatedDataWarning`` warning, unless ``offline`` is error.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more months are requested than the record has, or the logarithm of 0 is
            needed.

    Source: Andrews and Herzberg (1985), table 11.1.
    """

    path = "timeseries/monthly-sunspots.csv"
    layout = CSV
    state_name = "sunspots"
    unit = "sunspots a month"
    first = (1749, 1)

    def simulate(self) -> Tensor:
        """Cycles of 131 months with random heights, and noise proportional to their square root."""
        t = torch.arange(MONTHS)
        generator = torch.Generator().manual_seed(1749)
        height = 60 + 80 * torch.rand(MONTHS // 131 + 1, generator=generator, dtype=torch.float64)
        cycle = height[t // 131] * torch.sin(math.pi * (t % 131) / 131).square()
        noise = torch.randn(MONTHS, generator=generator, dtype=torch.float64)
        return (cycle + cycle.sqrt() * noise).clamp_min(0).round(decimals=1)
