"""Passengers of airlines by month, or a simulated series in their place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.registry import register
from components.series.forecast_data.monthly_record import CSV, LogRecord


@register("dataset", "airline")
class Airline(LogRecord):
    """Passengers of international airlines, in thousands, January 1949 to December 1960.

    The amplitude of the season grows with the trend, so the model is additive in logarithms.  y [1,
    n_train, 1] and the ``n_ahead`` months that follow.  If the file cannot be obtained, a simulated
    record replaces it, named ``airline-sim``, with a ``SimulatedDataWarning`` warning, unless
    ``offline`` is error.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more months are requested than the record has.

    Source: Box and Jenkins (1976), series G.
    """

    path = "timeseries/airline-passengers.csv"
    layout = CSV
    state_name = "passengers"
    unit = "thousands"
    first = (1949, 1)

    def simulate(self) -> Tensor:
        """A trend, a season of twelve months and noise, in logarithms."""
        t = torch.arange(144, dtype=torch.float64)
        noise = torch.randn(144, generator=torch.Generator().manual_seed(1949), dtype=torch.float64)
        season = 0.2 * torch.cos(2 * math.pi * (t - 6.5) / 12) + 0.07 * torch.cos(
            4 * math.pi * t / 12
        )
        return (4.8 + 0.01 * t + season + 0.04 * noise).exp().round()
