"""Abundance of nutria by month, or a simulated series in its place."""

from __future__ import annotations

import torch
from torch import Tensor

from components.registry import register
from components.series.forecast_data.monthly_record import LogRecord


@register("dataset", "nutria")
class Nutria(LogRecord):
    """Monthly abundance of female nutria in East Anglia, by retrospective census.

    There are 120 estimates.  y [1, n_train, 1] and the ``n_ahead`` months that follow; the
    file does not give the dates of the months.  If it cannot be obtained, a simulated
    record replaces it, named ``nutria-sim``, with a ``SimulatedDataWarning`` warning, unless
    ``offline`` is error.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more months are requested than the record has.

    Source: Peters, Hosack and Hayes (2010).
    """

    path = "timeseries/nutria.txt"
    state_name = "nutria"
    unit = "relative abundance"

    def simulate(self) -> Tensor:
        """A mean-reverting random walk of logarithms."""
        noise = torch.randn(120, generator=torch.Generator().manual_seed(9833), dtype=torch.float64)
        walk = torch.empty(120, dtype=torch.float64)
        walk[0] = -0.6
        for t in range(1, 120):
            walk[t] = walk[t - 1] + 0.05 * (1.2 - walk[t - 1]) + 0.09 * noise[t]
        return walk.exp()
