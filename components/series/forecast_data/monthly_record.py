"""Monthly records from a file: the first months are observed, and the next are forecast."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset
from components.errors import ConfigMismatchError
from components.series.forecasting import Forecasting, Origin, split
from components.series.sequence import Sequence

YEAR = 12  # months of a season


CSV = {"delimiter": ",", "skiprows": 1, "usecols": 1}  # a column of months, then the numbers


class MonthlyRecord(FileOrSimulationDataset[Forecasting]):
    """y [1, n_train, 1] and the ``n_ahead`` months that follow; subclasses add the file, a
    simulation and the unit."""

    kind = "sequence"
    traits = {"unknown_states"}
    stand_in = "a simulated record"
    path: ClassVar[str]  # in the catalogue
    layout: ClassVar[dict[str, Any]] = {}  # arguments of ``numpy.loadtxt``
    state_name: ClassVar[str]
    first: ClassVar[tuple[int, int] | None] = None  # year and month; None if unknown
    n_train: AtLeastTwo
    n_ahead: PositiveInt
    origin: Origin

    def file(self) -> str:
        return self.path

    def simulate(self) -> Tensor:
        """A simulated record [T], from a fixed seed."""
        raise NotImplementedError

    def transform(self, months: Tensor, record: Tensor) -> tuple[Tensor, str]:
        """Months of the record in the unit of the problem, and that unit."""
        raise NotImplementedError

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        name, files = self.locate(setting)
        record = torch.from_numpy(np.loadtxt(files[0], **self.layout)) if files else self.simulate()
        n = self.n_train + self.n_ahead
        if n > len(record):
            raise ConfigMismatchError(
                f"dataset.n_train={self.n_train}: with dataset.n_ahead={self.n_ahead} it "
                f"requires {n} months, but the record has {len(record)}"
            )
        y, unit = self.transform(record[:n], record)
        sequence = Sequence(
            name=name,
            states=None,
            observations=setting.place(y.view(1, -1, 1)),
            system=None,
            state_names=[self.state_name],
            dates=() if self.first is None else month_dates(self.first, n),
            about={"unit": unit},
        )
        return split(sequence, self.n_ahead, self.origin, season=YEAR)


def month_dates(first: tuple[int, int], n: int) -> tuple[str, ...]:
    """n months in ISO 8601 from a year and month."""
    start = 12 * first[0] + first[1] - 1
    return tuple(f"{month // 12}-{month % 12 + 1:02}" for month in range(start, start + n))


class LogRecord(MonthlyRecord):
    """Record of positive numbers, or their logarithms."""

    unit: ClassVar[str]
    log: bool

    def transform(self, months: Tensor, record: Tensor) -> tuple[Tensor, str]:
        if not self.log:
            return months, self.unit
        if bool((months <= 0).any()):
            month = int((months <= 0).nonzero()[0]) + 1
            raise ConfigMismatchError(
                f"dataset.log=true: month {month} is {float(months[month - 1]):g}, which has no "
                "logarithm; set dataset.log=false"
            )
        return months.log(), f"log {self.unit}"
