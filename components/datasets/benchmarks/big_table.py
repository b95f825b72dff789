"""Common code of the large regressions.

Randomly drawn rows are scored, and some or all of the others are for training.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import PositiveInt

from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset
from components.datasets.tables.raw_units import RawUnits
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised

Array = NDArray[np.float64]


class BigTable(FileOrSimulationDataset[Supervised]):
    """Large table; a subclass defines the number of rows and ``rows`` [N, D + 1], inputs and then
    the label."""

    kind = "supervised"
    label_kind = "real"
    label: ClassVar[str]
    total: ClassVar[int]
    n_train: AtLeastTwo | None
    n_test: PositiveInt
    batch_size: PositiveInt | None

    def rows(self, files: list[Path], simulate: int) -> Array:
        """The whole data set or, if simulated, the requested number of rows."""
        raise NotImplementedError

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        available = self.total - self.n_test
        n = available if self.n_train is None else self.n_train
        if n > available or available < 2:
            raise ConfigMismatchError(
                f"dataset.n_train: {self.name} has {self.total:,} rows, {max(available, 0):,} without dataset.n_test="
                f"{self.n_test:,}; lower either"
            )
        name, files = self.locate(setting)
        data = self.rows(files, n + self.n_test)
        order = torch.randperm(len(data), generator=rng.data, device=rng.data.device).cpu().numpy()
        scored = order[: self.n_test]
        train_rows = order[self.n_test : self.n_test + n]
        used = torch.from_numpy(data)
        xy = (used[:, :-1], used[:, -1:])
        return RawUnits.of(name, xy, train_rows, scored, self.batch_size, self.label, setting)
