"""Regression sets of the UCI repository, benchmarks of Bayesian neural networks, with their
standard splits."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt, model_validator

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.checksums import numbers
from components.datasets.stand_in import FileOrSimulationDataset, FilesOrStandIn
from components.datasets.tables.raw_units import RawUnits
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised
from components.registry import register

Array = NDArray[np.float64]
Name = Literal[
    "boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine_red", "yacht"
]


@dataclass(frozen=True)
class Shape:
    """Rows, inputs (the first columns; the next is the target) and standard splits of a set."""

    rows: int
    inputs: int
    splits: int = 20


SHAPES: dict[str, Shape] = {
    "boston": Shape(506, 13),  # median value of owner-occupied homes, 1000 $
    "concrete": Shape(1030, 8),  # compressive strength, MPa
    "energy": Shape(768, 8),  # heating load, kW h/m²
    "kin8nm": Shape(8192, 8),  # distance of a robot arm's end from a target
    # decay coefficient of a gas turbine's compressor; two inputs are constant
    "naval": Shape(11934, 16),
    "power": Shape(9568, 4),  # net hourly electrical output, MW
    "protein": Shape(45730, 9, 5),  # RMSD of a decoy from the native structure, Å
    "wine_red": Shape(1599, 11),  # quality, 0 to 10
    "yacht": Shape(308, 6),  # residuary resistance per weight of displacement
}


def split_rows(rows: int, split: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Training and test rows of a standard split: nine tenths and one tenth of a permutation.

    The permutations are those of Hernández-Lobato & Adams, published with the data by Gal &
    Ghahramani: successive draws of numpy's legacy generator with seed 1.
    """
    state = np.random.RandomState(1)
    for _ in range(split + 1):
        order = state.permutation(rows)
    end = round(0.9 * rows)
    return order[:end], order[end:]


@functools.lru_cache(maxsize=2)
def _read(path: Path) -> Array:
    return numbers(path)


def simulated_rows(name: str, shape: Shape) -> Array:
    """Simulated rows with the shape of a set, [rows, inputs + 1]: a random network of ten tanh
    units of correlated inputs, plus noise."""
    rng = np.random.default_rng([*name.encode()])
    x = rng.normal(size=(shape.rows, shape.inputs)) @ rng.normal(size=(shape.inputs, shape.inputs))
    x /= x.std(0)
    f = np.tanh(x @ rng.normal(size=(shape.inputs, 10)) / math.sqrt(shape.inputs) * 2) @ rng.normal(
        size=10
    )
    y = 20 + 5 * (f / f.std() + 0.3 * rng.normal(size=shape.rows))
    return np.concatenate([x, y[:, None]], 1)


class SplitTable(FileOrSimulationDataset[Supervised]):
    """A set of the UCI repository with numbered splits into training and test rows."""

    kind = "supervised"
    set: str
    split: NonNegativeInt | None
    batch_size: PositiveInt | None

    @property
    def splits(self) -> int:
        """Number of splits of the set."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if self.split is not None and self.split >= self.splits:
            raise ValueError(
                f"split: {self.set} has splits 0 to {self.splits - 1}; lower dataset.split"
            )
        return self

    def folds(self, data_dir: Path) -> int | None:
        return self.splits if self.split is None else None

    def choose_split(self, rng: Rng) -> int:
        """Number of the split of a replicate.

        Raises:
            ConfigMismatchError: the run has more replicates than splits.
        """
        split = rng.replicate if self.split is None else self.split
        if split >= self.splits:
            raise ConfigMismatchError(
                f"replicates: {self.set} has only {self.splits} splits, one per replicate; lower replicates to this number"
            )
        return split


@register("dataset", "uci_regression")
class UciRegression(SplitTable):
    """UCI regression sets for Bayesian neural networks, with their 20 standard splits.

    The sets are common benchmarks of Bayesian neural networks; protein has 5 splits.  With
    ``split`` null, replicate r of a run takes split r.  Inputs and target are standardised by the
    training rows, and a constant input is only centred; RMSE and log-likelihood are scored in the
    units of the target.  If the files are unavailable, a random network of the same shape, named
    ``uci-sim``, replaces them with a ``SimulatedDataWarning`` warning, unless ``offline`` is error.
    x [N, D], y [N, 1].

    Raises:
        DataUnavailableError: the files are unavailable.
        DamagedFileError: the numbers do not match their checksum.
        ConfigMismatchError: the run has more replicates than splits.

    Source: Hernández-Lobato & Adams (2015), section 5; Gal & Ghahramani (2016),
    section 5.2.
    """

    label_kind = "real"
    set: Name

    @property
    def splits(self) -> int:
        return SHAPES[self.set].splits

    def file(self) -> str:
        return f"uci_bnn/{self.set}.txt"  # the downloaded file

    def genuine(self) -> str:
        return "uci"

    def source(self) -> FilesOrStandIn:
        # the same numbers in another format, used in place
        return replace(super().source(), packed=f"uci_bnn/{self.set}.npz")

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        shape = SHAPES[self.set]
        split = self.choose_split(rng)
        name, files = self.locate(setting)
        data = _read(*files) if files else simulated_rows(self.set, shape)
        train_rows, scored = split_rows(len(data), split)
        x = torch.from_numpy(data[:, : shape.inputs])
        y = torch.from_numpy(data[:, shape.inputs, None])
        return RawUnits.of(name, (x, y), train_rows, scored, self.batch_size, self.set, setting)
