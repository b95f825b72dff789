"""Monthly carbon dioxide at Mauna Loa, or a simulated series in its place."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from components.registry import register
from components.series.forecast_data.monthly_record import MonthlyRecord

MONTHS = 637  # of the record, to January 2018


@register("dataset", "co2")
class CO2(MonthlyRecord):
    """Monthly carbon dioxide at Mauna Loa: the first years are observed, the next are forecast.

    y [1, n_train, 1] and the ``n_ahead`` months that follow, standardised by the mean and standard
    deviation of the observed months (``train``), of all 637 months of the record including the
    forecast and later ones (``record``, as in the published errors), or not standardised (ppm).  If
    the file cannot be obtained, a simulated record replaces it, named ``co2-sim``, with a
    ``SimulatedDataWarning`` warning, unless ``offline`` is error.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more months are requested than the record has.

    Source: Keeling et al. (2005); Gallego (2021), section 2.4.2, "Prediction with a DLM".
    """

    path = "timeseries/co2_mauna_loa.csv"
    state_name = "CO2"
    first = (1965, 1)
    standardise: Literal["train", "record", "none"]

    def simulate(self) -> Tensor:
        """A record in ppm: a bent trend, a season of twelve months and noise."""
        t = torch.arange(MONTHS, dtype=torch.float64) / 12
        noise = torch.randn(
            MONTHS, generator=torch.Generator().manual_seed(1965), dtype=torch.float64
        )
        season = 2.8 * torch.sin(2 * math.pi * (t - 0.08)) + 0.7 * torch.sin(4 * math.pi * t)
        return 319.5 + 0.9 * t + 0.014 * t.square() + season + 0.3 * noise

    def transform(self, months: Tensor, record: Tensor) -> tuple[Tensor, str]:
        if self.standardise == "none":
            return months, "1 ppm"
        about = record[: self.n_train] if self.standardise == "train" else record
        scale = float(about.std(correction=0))
        return (months - about.mean()) / scale, f"{scale:g} ppm"
