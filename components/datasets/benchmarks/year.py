"""Release years of songs, from their timbre."""

from __future__ import annotations

import functools
import zipfile
from pathlib import Path

import numpy as np

from components.datasets.benchmarks.big_table import Array, BigTable
from components.datasets.tables.uci_regression import Shape, simulated_rows
from components.registry import register

FILE = "year/yearpredictionmsd.zip"
MEMBER = "YearPredictionMSD.txt"
INPUTS = 90


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Array:
    with zipfile.ZipFile(path) as archive, archive.open(MEMBER) as lines:
        data = np.loadtxt(lines, delimiter=",", dtype=np.float64)
    return np.roll(data, -1, axis=1)  # the year comes first


@register("dataset", "year")
class Year(BigTable):
    """Year Prediction MSD: year of a song, 1922 to 2011, from 90 features of its timbre.

    The features are 12 averages and 78 covariances.  Of 515,345 rows, ``n_test`` drawn by
    the run's seed are scored and ``n_train`` (null: all others) are for training.  Inputs and label
    are standardised by the training rows; RMSE and log-likelihood are in years.  If the file cannot
    be obtained, a random network of the same shape, named ``year-sim``, replaces it with a
    ``SimulatedDataWarning`` warning, unless ``offline`` is error.  x [N, 90], y [N, 1].

    The original split keeps all songs of an artist on one side; the paper splits at random, as
    here.

    Raises:
        DataUnavailableError: the file cannot be obtained.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: more rows are requested than exist.

    Source: Bertin-Mahieux et al. (2011); Rodríguez Santana and Hernández-Lobato (2020),
    section 6.3.
    """

    label = "year"
    total = 515_345

    def file(self) -> str:
        return FILE

    def rows(self, files: list[Path], simulate: int) -> Array:
        return _read(*files) if files else simulated_rows("year", Shape(simulate, INPUTS))
