"""Monthly carbon dioxide at Mauna Loa, or a simulated series in its place."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset
from components.registry import register
from components.series.forecast_data.monthly_record import YEAR, first_months, month_dates
from components.series.forecasting import Forecasting, Origin, split
from components.series.sequence import Sequence

FILE = "timeseries/co2_mauna_loa.csv"
FIRST = (1965, 1)  # year and month
MONTHS = 637  # of the record, to January 2018


def simulate_record() -> Tensor:
    """A record like it [637], in ppm: a bent trend, a season of twelve months and noise, from a
    seed of its own."""
    t = torch.arange(MONTHS, dtype=torch.float64) / 12
    noise = torch.randn(MONTHS, generator=torch.Generator().manual_seed(1965), dtype=torch.float64)
    season = 2.8 * torch.sin(2 * math.pi * (t - 0.08)) + 0.7 * torch.sin(4 * math.pi * t)
    return 319.5 + 0.9 * t + 0.014 * t.square() + season + 0.3 * noise


@register("dataset", "co2")
class CO2(FileOrSimulationDataset[Forecasting]):
    """Monthly carbon dioxide at Mauna Loa: the first years are seen, the next are forecast.

    y [1, n_train, 1] and the ``n_ahead`` months that follow, less a mean and divided by a
    standard deviation: of the months seen (``train``), of all 637 months of the record,
    those to be forecast and all later ones included (``record``, as the published errors
    have it), or none (ppm).  If the file cannot be obtained, a simulated record replaces
    it, named ``co2-sim``, with a ``SimulatedDataWarning`` warning, unless ``offline`` is error.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more months are requested than there are.

    Source: Keeling et al. (2005); Gallego (2021), section 2.4.2, "Prediction with a DLM".
    """

    kind = "sequence"
    traits = {"unknown_states"}
    stand_in = "a simulated record"
    n_train: AtLeastTwo
    n_ahead: PositiveInt
    origin: Origin
    standardise: Literal["train", "record", "none"]

    def file(self) -> str:
        return FILE

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        name = self.identity(setting.data_dir, setting.offline)
        path = self.locate(setting)
        record = simulate_record() if path is None else torch.from_numpy(np.loadtxt(path))
        months = first_months(record, self.n_train, self.n_ahead)
        about = {"train": record[: self.n_train], "record": record, "none": torch.tensor([0.0])}[
            self.standardise
        ]
        scale = 1.0 if self.standardise == "none" else float(about.std(correction=0))
        y = (months - about.mean()) / scale
        sequence = Sequence(
            name=name,
            states=None,
            observations=setting.place(y.view(1, -1, 1)),
            system=None,
            state_names=["CO2"],
            dates=month_dates(FIRST, len(y)),
            about={"unit": f"{scale:g} ppm"},
        )
        return split(sequence, self.n_ahead, self.origin, season=YEAR)
