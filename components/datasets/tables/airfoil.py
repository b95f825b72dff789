"""Noise of aerofoil sections in a wind tunnel."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset
from components.datasets.tables.put_aside import HeldOutRows
from components.datasets.tables.uci_regression import Shape, simulated_rows
from components.problems.supervised import Supervised
from components.registry import register

FILE = "uci_10fold/airfoil/data.csv.gz"
SHAPE = Shape(1503, 5)


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> NDArray[np.float64]:
    return np.loadtxt(path, delimiter=",", ndmin=2)


@register("dataset", "airfoil")
class Airfoil(FileOrSimulationDataset[Supervised], HeldOutRows):
    """Sound pressure of NACA 0012 aerofoils, a regression on five inputs.

    The inputs are frequency, angle of attack, chord, speed and thickness of the boundary
    layer.  1,503 rows (1,500 in the thesis); inputs and label are standardised by the
    training rows.  ``n_test`` rows, drawn from the seed, are held out; 0 trains on all rows
    and scores the same rows, as in the thesis.  If the file is unavailable, a random network of the
    same shape, named ``airfoil-sim``, replaces it with a ``SimulatedDataWarning`` warning, unless
    ``offline`` is error.  x [N, 5], y [N, 1].

    Raises:
        DataUnavailableError: the file is unavailable.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: no rows are left to learn from.

    Source: Brooks, Pope and Marcolini (1989), UCI repository; Boustati (2021), appendix
    B.2.2.
    """

    kind = "supervised"
    label_kind = "real"

    def file(self) -> str:
        return FILE

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, files = self.locate(setting)
        data = _read(*files) if files else simulated_rows("airfoil", SHAPE)
        rows = torch.from_numpy(data)
        return self.make_problem(
            name,
            rows[:, : SHAPE.inputs],
            rows[:, SHAPE.inputs :],
            target="real",
            task="sound pressure",
            rng=rng,
            setting=setting,
        )
