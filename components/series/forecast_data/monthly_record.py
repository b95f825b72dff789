"""Monthly records of a file: the first months are seen, the next are forecast."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

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


def first_months(record: Tensor, n_train: int, n_ahead: int) -> Tensor:
    """The months of a record [T] that are seen, and those to be forecast.

    Raises:
        ConfigMismatchError: there are not so many.
    """
    n = n_train + n_ahead
    if n > len(record):
        raise ConfigMismatchError(
            f"dataset.n_train={n_train}: with dataset.n_ahead={n_ahead} that is {n} months, the record has {len(record)}"
        )
    return record[:n]


def month_dates(first: tuple[int, int], n: int) -> tuple[str, ...]:
    """n months in ISO 8601 from a year and month."""
    start = 12 * first[0] + first[1] - 1
    return tuple(f"{month // 12}-{month % 12 + 1:02}" for month in range(start, start + n))


class MonthlyRecord(FileOrSimulationDataset[Forecasting]):
    """y [1, n_train, 1], or its logarithm, and the ``n_ahead`` months that follow; a subclass adds
    its file and reads it."""

    kind = "sequence"
    traits = {"unknown_states"}
    stand_in = "a simulated record"
    path: ClassVar[str]  # in the catalogue
    state_name: ClassVar[str]
    unit: ClassVar[str]
    first: ClassVar[tuple[int, int] | None] = None  # year and month; None: not known
    n_train: AtLeastTwo
    n_ahead: PositiveInt
    origin: Origin
    log: bool

    def file(self) -> str:
        return self.path

    def read(self, path: Path) -> Tensor:
        """The record [T]."""
        raise NotImplementedError

    def simulate(self) -> Tensor:
        """A record like it [T], from a seed of its own."""
        raise NotImplementedError

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        name = self.identity(setting.data_dir, setting.offline)
        path = self.locate(setting)
        record = self.simulate() if path is None else self.read(path)
        y = first_months(record, self.n_train, self.n_ahead)
        if self.log and bool((y <= 0).any()):
            month = int((y <= 0).nonzero()[0]) + 1
            raise ConfigMismatchError(
                f"dataset.log=true: month {month} has {float(y[month - 1]):g}, which has no logarithm; "
                "set dataset.log=false"
            )
        y = y.log() if self.log else y
        sequence = Sequence(
            name=name,
            states=None,
            observations=torch.as_tensor(y)
            .view(1, -1, 1)
            .to(device=setting.device, dtype=setting.dtype),
            system=None,
            state_names=[self.state_name],
            dates=() if self.first is None else month_dates(self.first, len(y)),
            about={"unit": f"log {self.unit}" if self.log else self.unit},
        )
        return split(sequence, self.n_ahead, self.origin, season=YEAR)
